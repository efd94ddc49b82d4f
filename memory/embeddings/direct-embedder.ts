import type { Embedder } from './embedder.ts';
import { askedWith, type Encoder } from './query-encoder.ts';

/** An encoder as it is, on the thread of whoever asks. */
export function createDirectEmbedder(encoder: Encoder): Embedder {
  return {
    id: encoder.id,
    dimensions: encoder.dimensions,
    embed: async (texts) => (texts.length === 0 ? [] : encoder.documents(texts)),
    embedQuery: async (text, corpus) => askedWith(await encoder.question(text), corpus),
    close: async () => {},
  };
}
