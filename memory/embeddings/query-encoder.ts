import type { Corpus, Embedding, QueryVector } from './embedder.ts';
import { type PieceVectors, toUnit, weighPieces } from './word-vectors.ts';

/** What an encoder makes of a question alone; the corpus does the rest. */
export type Question =
  | ({ readonly kind: 'vector' } & QueryVector)
  /** The corpus weighs each piece. */
  | { readonly kind: 'pieces'; readonly pieces: PieceVectors }
  /** The mean of the corpus is taken away: what all texts have in common tells none of them apart. */
  | { readonly kind: 'uncentred'; readonly vector: Float32Array };

/** Turns texts into vectors wherever it is run, and may take its time. */
export interface Encoder {
  readonly id: string;
  readonly dimensions: number;
  documents(texts: readonly string[]): Promise<readonly Embedding[]>;
  question(text: string): Promise<Question>;
}

/** The vector that a question is asked with. */
export async function askedWith(question: Question, corpus: Corpus): Promise<QueryVector> {
  switch (question.kind) {
    case 'vector':
      return { vector: question.vector, comparedWith: question.comparedWith };
    case 'pieces':
      return {
        vector: weighPieces(question.pieces, corpus.pieceWeights(question.pieces.ids)),
        comparedWith: 'vector',
      };
    case 'uncentred':
      return { vector: centred(question.vector, await corpus.mean()), comparedWith: 'vector' };
  }
}

/**
 * For a mean m, (q - m) · d ranks unit vectors d as (q - m) · (d - m) does: the stored ones need no change when the
 * mean moves.
 */
function centred(vector: Float32Array, mean: Float32Array | null): Float32Array {
  if (mean === null) return vector;
  return toUnit(vector.map((value, at) => value - (mean[at] ?? 0)));
}
