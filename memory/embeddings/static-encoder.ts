import { readFileSync } from 'node:fs';
import { CometError } from '../../common/errors.ts';
import { hasPairedScript, isPairedScript, SCRIPT_DIMENSIONS } from '../text/cjk.ts';
import type { Embedder } from './embedder.ts';
import { createDirectEmbedder, type Encoder } from './encoder.ts';
import { hashVector } from './hashed-vector.ts';
import { documentVector, parseStaticTable, piecesOf, pieceVectors, type StaticTable } from './word-vectors.ts';

export const STATIC = { id: 'static-minilm-128-v1', dimensions: 128 } as const;

/** Sums word vectors from a table; scripts without spaces get hashed vectors. */
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
    query: async (text) => scriptQuery(text) ?? { kind: 'pieces', pieces: pieceVectors(table, text) },
  };
}

export function createStaticEmbedder(): Embedder {
  return createDirectEmbedder(createStaticEncoder());
}

/** For Hangul, kana and Han, which the table does not contain. */
function scriptVector(text: string): Float32Array | null {
  return hasPairedScript(text) ? hashVector(text, SCRIPT_DIMENSIONS) : null;
}

function scriptQuery(text: string): Awaited<ReturnType<Encoder['query']>> | null {
  if (!isPairedScript(text)) return null;
  return { kind: 'vector', vector: hashVector(text, SCRIPT_DIMENSIONS), comparedWith: 'scriptVector' };
}

const FILE = new URL('./data/static-table.bin', import.meta.url);

let loaded: StaticTable | null = null;

/**
 * The table shipped with the package, read once per thread.
 *
 * @throws CometError `index_failed`
 */
export function loadStaticTable(): StaticTable {
  if (loaded !== null) return loaded;
  try {
    // readFileSync may return a view of a shared pool; the copy owns its bytes for the life of the thread.
    loaded = parseStaticTable(new Uint8Array(readFileSync(FILE)));
  } catch (cause) {
    throw new CometError('index_failed', 'the table of word vectors cannot be read; reinstall comet-cc', { cause });
  }
  return loaded;
}
