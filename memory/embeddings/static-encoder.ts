import { hasPairedScript, isPairedScript, SCRIPT_DIMENSIONS } from '../text/cjk.ts';
import { createDirectEmbedder } from './direct-embedder.ts';
import type { Embedder } from './embedder.ts';
import { hashVector } from './hash-encoder.ts';
import type { Encoder } from './query-encoder.ts';
import { loadStaticTable } from './static-table-file.ts';
import { documentVector, piecesOf, pieceVectors, type StaticTable } from './word-vectors.ts';

export const STATIC = { id: 'static-minilm-128-v1', dimensions: 128 } as const;

/** Word vectors out of a table, summed; for scripts without spaces hashed ones. */
export function createStaticEncoder(table: StaticTable = loadStaticTable()): Encoder {
  return {
    ...STATIC,
    documents: async (texts) =>
      texts.map((text) => {
        const pieces = piecesOf(table, text);
        return {
          vector: documentVector(table, pieces),
          scriptVector: scriptVector(text),
          pieces: Uint16Array.from(new Set(pieces)).sort(),
        };
      }),
    question: async (text) => scriptQuestion(text) ?? { kind: 'pieces', pieces: pieceVectors(table, text) },
  };
}

export function createStaticEmbedder(): Embedder {
  return createDirectEmbedder(createStaticEncoder());
}

/** See `Embedding.scriptVector`, for embedders that read the Latin script only. */
export function scriptVector(text: string): Float32Array | null {
  return hasPairedScript(text) ? hashVector(text, SCRIPT_DIMENSIONS) : null;
}

/** The question where it is asked in such a script, else null. */
export function scriptQuestion(text: string): Awaited<ReturnType<Encoder['question']>> | null {
  if (!isPairedScript(text)) return null;
  return { kind: 'vector', vector: hashVector(text, SCRIPT_DIMENSIONS), comparedWith: 'scriptVector' };
}
