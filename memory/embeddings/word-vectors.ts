import { createVocabulary, type Vocabulary, wordPieces } from './wordpiece.ts';

/** One context-free vector per subword of a vocabulary. */
export interface StaticTable {
  readonly dimensions: number;
  readonly vocabulary: Vocabulary;
  /** Row-major; a vector is its row times its scale. */
  readonly rows: Int8Array;
  readonly scales: Float32Array;
}

/** A query's subwords and vectors, to be weighed by the corpus. */
export interface PieceVectors {
  readonly dimensions: number;
  /** Distinct, in order of appearance. */
  readonly ids: readonly number[];
  readonly counts: readonly number[];
  /** Row-major, in the order of `ids`. */
  readonly vectors: Float32Array;
}

/** Longer texts are cut before they are embedded; full-text search covers all of them. */
const MAX_CHARS = 20_000;
const MAX_QUERY_CHARS = 4_000;
const MAGIC = 'CCSTATIC';
const HEADER_BYTES = 16;

/**
 * The bytes of a table file: `CCSTATIC`, uint32 row count, uint32 dimensions, float32 scales, int8 rows, then the
 * vocabulary in UTF-8, one piece a line. Little endian. The numbers stay views of `bytes`.
 *
 * @throws Error if the bytes are not such a file
 */
export function parseStaticTable(bytes: Uint8Array<ArrayBuffer>): StaticTable {
  const head = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const ascii = String.fromCharCode(...bytes.subarray(0, MAGIC.length));
  if (bytes.byteLength < HEADER_BYTES || ascii !== MAGIC) throw new Error('not a table of static vectors');
  const count = head.getUint32(8, true);
  const dimensions = head.getUint32(12, true);
  const rowsAt = HEADER_BYTES + count * 4;
  const wordsAt = rowsAt + count * dimensions;
  const vocabulary = createVocabulary(new TextDecoder().decode(bytes.subarray(wordsAt)));
  if (vocabulary.size !== count) throw new Error('the table of static vectors is cut short');
  const aligned = (bytes.byteOffset + HEADER_BYTES) % 4 === 0;
  const scales = aligned
    ? new Float32Array(bytes.buffer, bytes.byteOffset + HEADER_BYTES, count)
    : new Float32Array(bytes.slice(HEADER_BYTES, rowsAt).buffer);
  const rows = new Int8Array(bytes.buffer, bytes.byteOffset + rowsAt, count * dimensions);
  return { dimensions, vocabulary, rows, scales };
}

/** Inverse of `parseStaticTable`. */
export function encodeStaticTable(
  { dimensions, rows, scales }: Pick<StaticTable, 'dimensions' | 'rows' | 'scales'>,
  vocabulary: readonly string[],
): Uint8Array<ArrayBuffer> {
  const words = new TextEncoder().encode(vocabulary.join('\n'));
  const rowsAt = HEADER_BYTES + scales.length * 4;
  const bytes = new Uint8Array(rowsAt + rows.length + words.length);
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode(MAGIC));
  view.setUint32(8, scales.length, true);
  view.setUint32(12, dimensions, true);
  for (const [at, scale] of scales.entries()) view.setFloat32(HEADER_BYTES + at * 4, scale, true);
  bytes.set(new Uint8Array(rows.buffer, rows.byteOffset, rows.length), rowsAt);
  bytes.set(words, rowsAt + rows.length);
  return bytes;
}

/** Subword ids of a document, with repeats. */
export function piecesOf(table: StaticTable, text: string): number[] {
  return wordPieces(text.slice(0, MAX_CHARS), table.vocabulary);
}

/** The normalized sum of the subword vectors; all zeros without subwords. */
export function documentVector(table: StaticTable, pieces: readonly number[]): Float32Array {
  const sum = new Float32Array(table.dimensions);
  for (const id of pieces) addRow(sum, table, id, 1);
  return toUnit(sum);
}

export function wordVector(table: StaticTable, word: string): Float32Array {
  return documentVector(table, wordPieces(word, table.vocabulary));
}

/** Like `documentVector`, weighing each subword by its idf. */
export function queryVector(
  table: StaticTable,
  text: string,
  idf: (pieces: readonly number[]) => ReadonlyMap<number, number>,
): Float32Array {
  const pieces = pieceVectors(table, text);
  return weighPieces(pieces, idf(pieces.ids));
}

export function pieceVectors(table: StaticTable, text: string): PieceVectors {
  const counts = new Map<number, number>();
  for (const id of wordPieces(text.slice(0, MAX_QUERY_CHARS), table.vocabulary))
    counts.set(id, (counts.get(id) ?? 0) + 1);
  const ids = [...counts.keys()];
  const vectors = new Float32Array(ids.length * table.dimensions);
  for (const [at, id] of ids.entries()) {
    addRow(vectors.subarray(at * table.dimensions, (at + 1) * table.dimensions), table, id, 1);
  }
  return { dimensions: table.dimensions, ids, counts: [...counts.values()], vectors };
}

/** Subwords without an `idf` weigh 1. */
export function weighPieces(pieces: PieceVectors, idf: ReadonlyMap<number, number>): Float32Array {
  const { dimensions, ids, counts, vectors } = pieces;
  const sum = new Float32Array(dimensions);
  for (const [at, id] of ids.entries()) {
    const weight = (counts[at] ?? 0) * (idf.get(id) ?? 1);
    for (let axis = 0; axis < dimensions; axis += 1) {
      sum[axis] = (sum[axis] as number) + weight * (vectors[at * dimensions + axis] as number);
    }
  }
  return toUnit(sum);
}

function addRow(sum: Float32Array, { dimensions, rows, scales }: StaticTable, id: number, weight: number): void {
  const scale = weight * (scales[id] ?? 0);
  const start = id * dimensions;
  for (let axis = 0; axis < dimensions; axis += 1) {
    sum[axis] = (sum[axis] as number) + scale * (rows[start + axis] as number);
  }
}

/** Normalizes in place; a zero vector is left unchanged. */
export function toUnit(vector: Float32Array): Float32Array {
  let squares = 0;
  for (const value of vector) squares += value * value;
  if (squares === 0) return vector;
  const factor = 1 / Math.sqrt(squares);
  for (let at = 0; at < vector.length; at += 1) vector[at] = (vector[at] as number) * factor;
  return vector;
}
