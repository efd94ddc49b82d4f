import { parentPort, workerData } from 'node:worker_threads';
import { startS3Server } from '../test/helpers/s3-server.ts';

/** An S3 server on a thread of its own, so that what it does is not counted as the machine's. */
const server = await startS3Server(workerData as string);
parentPort?.on('message', () => parentPort?.postMessage(server.requests()));
parentPort?.postMessage({ uri: server.uri, env: server.env });
