import type { Corpus, Embedder, Embedding, QueryVector } from './embedder.ts';
import { type PieceVectors, toUnit, weighPieces } from './word-vectors.ts';

/** A query as an encoder returns it, before the corpus is applied. */
export type EncodedQuery =
  | ({ readonly kind: 'vector' } & QueryVector)
  /** The corpus weighs each piece. */
  | { readonly kind: 'pieces'; readonly pieces: PieceVectors }
  /** The mean of the corpus is subtracted: what all texts share distinguishes none of them. */
  | { readonly kind: 'uncentered'; readonly vector: Float32Array };

/** Turns texts into vectors on the thread that calls it; a call may be slow. */
export interface Encoder {
  readonly id: string;
  readonly dimensions: number;
  documents(texts: readonly string[]): Promise<readonly Embedding[]>;
  query(text: string): Promise<EncodedQuery>;
}

/** The vector to search with. */
export async function encodeQuery(query: EncodedQuery, corpus: Corpus): Promise<QueryVector> {
  switch (query.kind) {
    case 'vector':
      return { vector: query.vector, comparedWith: query.comparedWith };
    case 'pieces':
      return {
        vector: weighPieces(query.pieces, corpus.pieceWeights(query.pieces.ids)),
        comparedWith: 'vector',
      };
    case 'uncentered':
      return { vector: centered(query.vector, await corpus.mean()), comparedWith: 'vector' };
  }
}

/**
 * For a mean m, (q - m) · d ranks unit vectors d as (q - m) · (d - m) does: the stored ones need no change when the
 * mean moves.
 */
function centered(vector: Float32Array, mean: Float32Array | null): Float32Array {
  if (mean === null) return vector;
  return toUnit(vector.map((value, at) => value - (mean[at] ?? 0)));
}

/** Runs an encoder on the calling thread. */
export function createDirectEmbedder(encoder: Encoder): Embedder {
  return {
    id: encoder.id,
    dimensions: encoder.dimensions,
    embed: async (texts) => (texts.length === 0 ? [] : encoder.documents(texts)),
    embedQuery: async (text, corpus) => encodeQuery(await encoder.query(text), corpus),
    close: async () => {},
  };
}
