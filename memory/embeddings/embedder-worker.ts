import { parentPort, workerData } from 'node:worker_threads';
import { getReason } from '../../common/errors.ts';
import type { Embedding } from './embedder.ts';
import type { EncodedQuery } from './encoder.ts';
import { openMiniLmEncoder } from './model-encoder.ts';

export type EmbedRequest =
  | { readonly id: number; readonly document: string }
  | { readonly id: number; readonly query: string };

export type EmbedReply =
  | { readonly id: number; readonly embedding: Embedding }
  | { readonly id: number; readonly query: EncodedQuery }
  | { readonly id: number; readonly error: string };

const opening = openMiniLmEncoder((workerData as { readonly dir: string }).dir);
// Reported to the first request; an unhandled rejection would end the thread.
opening.catch(() => undefined);

parentPort?.on('message', (request: EmbedRequest) => {
  answer(request).then(
    (reply) => parentPort?.postMessage(reply),
    (error: unknown) => {
      const reply: EmbedReply = { id: request.id, error: getReason(error) };
      parentPort?.postMessage(reply);
    },
  );
});

async function answer(request: EmbedRequest): Promise<EmbedReply> {
  const encoder = await opening;
  if ('query' in request) return { id: request.id, query: await encoder.query(request.query) };
  const [embedding] = await encoder.documents([request.document]);
  return { id: request.id, embedding: embedding as Embedding };
}
