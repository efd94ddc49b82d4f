import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';

/** What is used of s3rver, which has no types. */
type S3rver = new (options: {
  readonly address: string;
  readonly port: number;
  readonly silent: boolean;
  readonly directory: string;
  readonly configureBuckets: readonly { readonly name: string }[];
}) => { run(): Promise<AddressInfo>; close(): Promise<void> };

const require = createRequire(import.meta.url);
// One of its packages replaces this function for the whole process.
const { cwd } = process;
const S3rver = require('s3rver') as S3rver;
process.cwd = cwd;
const BUCKET = 'team-bucket';

export interface S3Server {
  /** Of the bucket. */
  readonly uri: string;
  readonly env: NodeJS.ProcessEnv;
  close(): Promise<void>;
}

/** An S3 server on loopback with one bucket, whose objects lie below `directory`. */
export async function startS3Server(directory: string): Promise<S3Server> {
  const server = new S3rver({
    ...{ address: '127.0.0.1', port: 0, silent: true, directory },
    configureBuckets: [{ name: BUCKET }],
  });
  const { port } = await server.run();
  return {
    uri: `s3://${BUCKET}`,
    env: {
      ...{ AWS_ENDPOINT: `http://127.0.0.1:${port}`, AWS_ALLOW_HTTP: 'true', AWS_REGION: 'us-east-1' },
      ...{ AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' },
    },
    close: () => server.close(),
  };
}
