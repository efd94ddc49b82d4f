import { readdir, readFile } from 'node:fs/promises';
import http from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import path from 'node:path';

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

/** What is wrong with the storage: `torn` cuts each upload in half, `flaky` drops every third request. */
export type StorageFault = 'none' | 'gone' | 'slow' | 'flaky' | 'denied' | 'skewed' | 'full' | 'torn';

export interface S3Server {
  /** Of the bucket. */
  readonly uri: string;
  readonly env: NodeJS.ProcessEnv;
  /** From the next request on. */
  fail(fault: StorageFault): void;
  /** Whether an object of the bucket, or of a folder in it, holds the text. */
  holds(text: string, folder?: string): Promise<boolean>;
  /** Since the start, by what they cost: objects written or listed, and objects read. */
  requests(): { readonly writes: number; readonly lists: number; readonly reads: number };
  close(): Promise<void>;
}

const SLOW_MS = 100;

/**
 * An S3 server on loopback with one bucket, whose objects lie below `directory`. With `COMET_TEST_S3` the server on that
 * port of loopback stands in its place: it has the bucket, readable by all, and knows the key.
 */
export async function startS3Server(directory: string): Promise<S3Server> {
  const other = Number(process.env['COMET_TEST_S3'] ?? 0);
  const server = other > 0 ? null : startS3rver(directory);
  const behind = other || ((await server?.run())?.port ?? 0);
  let fault: StorageFault = 'none';
  let requests = 0;
  const counts = { writes: 0, lists: 0, reads: 0 };
  const front = http.createServer((request, response) => {
    requests += 1;
    const isUpload = request.method === 'PUT' || request.method === 'POST';
    if (isUpload) counts.writes += 1;
    else if (request.url?.includes('list-type=')) counts.lists += 1;
    else counts.reads += 1;
    if (fault === 'gone' || (fault === 'flaky' && requests % 3 === 0)) return request.socket.destroy();
    if (fault === 'denied') return answer(response, 403, 'AccessDenied');
    if (fault === 'skewed') return answer(response, 403, 'RequestTimeTooSkewed');
    if (fault === 'full' && isUpload) return answer(response, 507, 'InsufficientStorage');
    const pass = (): void => forward(request, response, { port: behind, isTorn: fault === 'torn' && isUpload });
    if (fault === 'slow') setTimeout(pass, SLOW_MS);
    else pass();
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  const { port } = front.address() as AddressInfo;
  return {
    uri: `s3://${BUCKET}`,
    env: {
      ...{ AWS_ENDPOINT: `http://127.0.0.1:${port}`, AWS_ALLOW_HTTP: 'true', AWS_REGION: 'us-east-1' },
      ...{ AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' },
    },
    requests: () => ({ ...counts }),
    holds: (text, folder = '') =>
      server === null
        ? isServed(`http://127.0.0.1:${behind}/${BUCKET}`, text, folder)
        : isStored(path.join(directory, BUCKET, folder), text),
    fail(kind) {
      fault = kind;
    },
    async close() {
      front.closeAllConnections();
      await new Promise((resolve) => front.close(resolve));
      await server?.close();
    },
  };
}

function startS3rver(directory: string): InstanceType<S3rver> {
  const options = { address: '127.0.0.1', port: 0, silent: true, directory };
  return new S3rver({ ...options, configureBuckets: [{ name: BUCKET }] });
}

/** Whether a file below the folder holds the text. */
export async function isStored(dir: string, text: string): Promise<boolean> {
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => [])) {
    if (!entry.isFile()) continue;
    if ((await readFile(path.join(entry.parentPath, entry.name))).includes(text)) return true;
  }
  return false;
}

async function isServed(bucket: string, text: string, folder: string): Promise<boolean> {
  const listed = await (await fetch(`${bucket}?list-type=2&max-keys=1000&prefix=${folder}`)).text();
  for (const [, key = ''] of listed.matchAll(/<Key>([^<]+)<\/Key>/g)) {
    const object = await fetch(`${bucket}/${key}`);
    if (object.ok && Buffer.from(await object.arrayBuffer()).includes(text)) return true;
  }
  if (!listed.includes('<IsTruncated>false')) throw new Error('the bucket holds more than is listed at once');
  return false;
}

function answer(response: http.ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'content-type': 'application/xml' });
  response.end(`<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`);
}

function forward(
  request: http.IncomingMessage,
  response: http.ServerResponse,
  { port, isTorn }: { readonly port: number; readonly isTorn: boolean },
): void {
  const { method, url, headers } = request;
  const behind = http.request({ host: '127.0.0.1', port, method, path: url, headers }, (found) => {
    response.writeHead(found.statusCode ?? 502, found.headers);
    found.pipe(response);
  });
  behind.on('error', () => response.destroy());
  if (!isTorn) return void request.pipe(behind);
  request.once('data', (chunk: Buffer) => {
    behind.write(chunk.subarray(0, chunk.length >> 1));
    behind.destroy();
    request.socket.destroy();
  });
}
