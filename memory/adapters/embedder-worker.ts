import { parentPort } from 'node:worker_threads';
import { createHashEmbedder } from './hash-embedder.ts';

export interface EmbedRequest {
  readonly id: number;
  readonly texts: readonly string[];
}

export type EmbedReply =
  | { readonly id: number; readonly vectors: Float32Array<ArrayBuffer>[] }
  | { readonly id: number; readonly error: string };

const embedder = createHashEmbedder();

parentPort?.on('message', (request: EmbedRequest) => {
  embedder.embed(request.texts).then(
    (vectors) => {
      const owned = vectors.map((vector) => new Float32Array(vector));
      const reply: EmbedReply = { id: request.id, vectors: owned };
      parentPort?.postMessage(
        reply,
        owned.map((vector) => vector.buffer),
      );
    },
    (error: unknown) => {
      const reply: EmbedReply = { id: request.id, error: error instanceof Error ? error.message : String(error) };
      parentPort?.postMessage(reply);
    },
  );
});
