import type { Embedder } from '../../memory/embeddings/embedder.ts';
import { createDirectEmbedder } from '../../memory/embeddings/encoder.ts';
import { hashVector } from '../../memory/embeddings/static-encoder.ts';

const DIMENSIONS = 256;

/** An embedder without a model or a worker thread, for tests. */
export function createHashEmbedder(): Embedder {
  return createDirectEmbedder({
    id: `hash-ngram-${DIMENSIONS}-v1`,
    dimensions: DIMENSIONS,
    documents: async (texts) =>
      texts.map((text) => ({ vector: hashVector(text, DIMENSIONS), scriptVector: null, pieces: new Uint16Array(0) })),
    query: async (text) => ({ kind: 'vector', vector: hashVector(text, DIMENSIONS), comparedWith: 'vector' }),
  });
}
