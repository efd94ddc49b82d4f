import type { Embedder } from '../../memory/embeddings/embedder.ts';
import { hashVector } from '../../memory/embeddings/static-embedder.ts';

/** An embedder without a model, for tests. */
export function createHashEmbedder(dimensions = 256, id = `hash-ngram-${dimensions}-v1`): Embedder {
  const getVector = (text: string): Float32Array => hashVector(text, dimensions);
  return {
    ...{ id, dimensions },
    embed: async (texts) =>
      texts.map((text) => ({ vector: getVector(text), scriptVector: null, pieces: new Uint16Array(0) })),
    embedQuery: async (text) => ({ vector: getVector(text), comparedWith: 'vector' }),
    close: async () => {},
  };
}
