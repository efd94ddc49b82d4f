import { readFileSync } from 'node:fs';
import { runAtOnce, runInSlices, type Steps } from '../../common/async.ts';
import { CometError } from '../../common/errors.ts';
import { tally } from '../../common/map.ts';
import { builtFile } from '../../common/paths.ts';
import { hashText } from '../text/repetition.ts';
import { hasPairedScript, isPairedScript, SCRIPT_DIMENSIONS, tokenize } from '../text/tokenizer.ts';
import type { Embedder, Embedding } from './embedder.ts';
import { toUnit } from './vectors.ts';

export const STATIC = { id: 'static-minilm-256-v2', dimensions: 256 } as const;

/**
 * Sums word vectors from a table; scripts without spaces get hashed vectors. On this thread: one of its own would take
 * 30 MB, and the table takes microseconds for a word.
 */
export function createStaticEmbedder(): Embedder {
  const table = loadStaticTable();
  return {
    ...STATIC,
    embed: (texts) => runInSlices(encodeDocuments(table, texts)),
    async embedQuery(text, corpus) {
      if (isPairedScript(text)) return { vector: hashVector(text, SCRIPT_DIMENSIONS), comparedWith: 'scriptVector' };
      const pieces = getPieces(table, text.slice(0, MAX_QUERY_CHARS));
      return { vector: sumPieces(table, pieces, corpus.pieceWeights([...new Set(pieces)])), comparedWith: 'vector' };
    },
    close: async () => {},
  };
}

function* encodeDocuments(table: StaticTable, texts: readonly string[]): Steps<Embedding[]> {
  const embeddings: Embedding[] = [];
  for (const text of texts) {
    const pieces = getPieces(table, text);
    yield;
    const vector = sumPieces(table, pieces);
    // The table contains no Hangul, kana and Han.
    const scriptVector = hasPairedScript(text) ? yield* hashWords(text, SCRIPT_DIMENSIONS) : null;
    embeddings.push({ vector, scriptVector, pieces: Uint16Array.from(new Set(pieces)).sort() });
    yield;
  }
  return embeddings;
}

const FILE = builtFile('memory', 'embeddings', 'data', 'static-table.bin');

let loaded: StaticTable | null = null;

/** The table shipped with the package, read once per thread. @throws CometError `index_failed` */
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

/** Longer texts are cut before they are embedded; full-text search covers all of them. */
const MAX_CHARS = 20_000;

/**
 * A vector without a model: words and their character 3- and 4-grams, hashed with a sign.
 * @returns a unit vector, or all zeros for a text without words
 */
export const hashVector = (text: string, dimensions: number): Float32Array => runAtOnce(hashWords(text, dimensions));

function* hashWords(text: string, dimensions: number): Steps<Float32Array> {
  const vector = new Float32Array(dimensions);
  for (const [token, count] of tally(tokenize(text.slice(0, MAX_CHARS)))) {
    yield;
    const weight = Math.sqrt(count);
    addFeature(vector, `w:${token}`, weight);
    const grams = characterGrams(token);
    // Together they weigh as much as the word itself.
    for (const gram of grams) addFeature(vector, gram, weight / Math.sqrt(grams.length));
  }
  return toUnit(vector);
}

function characterGrams(token: string): string[] {
  const points = [...`^${token}$`];
  const grams: string[] = [];
  for (const size of [3, 4]) {
    for (let at = 0; at + size <= points.length; at += 1) grams.push(points.slice(at, at + size).join(''));
  }
  return grams;
}

function addFeature(vector: Float32Array, feature: string, weight: number): void {
  const plain = hashText(feature);
  // Mixed, because slot and sign take few of its bits.
  const mixed = Math.imul(plain ^ (plain >>> 16), 0x85eb_ca6b);
  const hash = (mixed ^ (mixed >>> 13)) >>> 0;
  const slot = hash % vector.length;
  const sign = hash & 0x8000_0000 ? -1 : 1;
  vector[slot] = (vector[slot] ?? 0) + sign * weight;
}

/** One context-free vector per subword of a vocabulary. `rows` is row-major; a vector is its row times its scale. */
export type StaticTable = ReturnType<typeof parseStaticTable>;

const MAX_QUERY_CHARS = 4_000;
const MAGIC = 'CCSTATIC';
const HEADER_BYTES = 16;

/**
 * The bytes of a table file: `CCSTATIC`, uint32 row count, uint32 dimensions, float32 scales, int8 rows, then the
 * vocabulary in UTF-8, one piece a line. Little endian. The numbers stay views of `bytes`.
 * @throws Error if the bytes are not such a file
 */
export function parseStaticTable(bytes: Uint8Array<ArrayBuffer>) {
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

export function getPieces(table: StaticTable, text: string): number[] {
  return wordPieces(text.slice(0, MAX_CHARS), table.vocabulary);
}

/** The normalized sum of the subword vectors, those without an `idf` weighing 1; all zeros without subwords. */
export function sumPieces(table: StaticTable, pieces: readonly number[], idf?: ReadonlyMap<number, number>) {
  const { dimensions, rows, scales } = table;
  const sum = new Float32Array(dimensions);
  for (const [id, count] of tally(pieces)) {
    const scale = count * (idf?.get(id) ?? 1) * (scales[id] ?? 0);
    const start = id * dimensions;
    for (let axis = 0; axis < dimensions; axis += 1)
      sum[axis] = (sum[axis] as number) + scale * (rows[start + axis] as number);
  }
  return toUnit(sum);
}

/** By the table alone, whichever embedder the index has; null where it knows no word of the text, or few of its script. */
export function textVector(text: string): Float32Array | null {
  const table = loadStaticTable();
  const pieces = isPairedScript(text) ? [] : getPieces(table, text);
  return pieces.length === 0 ? null : sumPieces(table, pieces);
}

/** Of two unit vectors; null where there is only one. */
export function findSimilarity(one: Float32Array | null, other: Float32Array | null): number | null {
  return one && other && one.reduce((sum, value, at) => sum + value * (other[at] as number), 0);
}

const HAN = /\p{sc=Han}/gu;
const MARKS = /\p{Mn}/gu;
const WORDS = /[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu;
const MAX_PIECE = 30;
const HAS_WORD = /[\p{L}\p{N}]/u;
/** Longer ones are encoded data. */
const MAX_WORD = 100;

/**
 * Splits a text into subword ids, each word greedily from its start; a word that cannot be split is skipped. Accents and
 * case are dropped.
 *
 * Source: WordPiece, as in uncased BERT models.
 */
export function wordPieces(text: string, vocabulary: Vocabulary): number[] {
  if (!HAS_WORD.test(text)) return [];
  const plain = text.normalize('NFD').replace(MARKS, '').toLowerCase().replace(HAN, ' $& ');
  const pieces: number[] = [];
  for (const [word] of plain.matchAll(WORDS)) if (word.length <= MAX_WORD) pushPieces(word, vocabulary, pieces);
  return pieces;
}

function pushPieces(word: string, vocabulary: Vocabulary, pieces: number[]): void {
  const before = pieces.length;
  let at = 0;
  while (at < word.length) {
    let end = Math.min(word.length, at + MAX_PIECE);
    let id: number | undefined;
    for (; end > at; end -= 1) {
      const piece = word.slice(at, end);
      id = vocabulary.get(at === 0 ? piece : `##${piece}`);
      if (id !== undefined) break;
    }
    if (id === undefined) {
      pieces.length = before;
      return;
    }
    pieces.push(id);
    at = end;
  }
}

/** Ids of subwords; those inside a word have the prefix "##". */
export type Vocabulary = ReadonlyMap<string, number>;

/** @param lines  one subword per line; its id is the line number */
export function createVocabulary(lines: string): Vocabulary {
  return new Map(lines.split('\n').map((piece, id) => [piece, id]));
}

/** The vocabulary lists special tokens first, then words by frequency. */
const FIRST_WORD = 1_995;
const COMMON_LOG = 6.5;
const RARE_LOG = 9.6;
/** Minimum rarity of a word of several subwords. */
const LEAST_OF_PARTS = 0.5;
const WORD = /^[a-z]+$/;

/** 0 for a common English word, 1 for a rare or unknown one, independent of the corpus; `token` is its stem. */
export function getWordRarity(word: string, token: string): number {
  if (!WORD.test(word)) return 1;
  const { vocabulary } = loadStaticTable();
  const pieces = wordPieces(word, vocabulary);
  const whole = [pieces, wordPieces(token, vocabulary)].flatMap((each) =>
    each.length === 1 ? getRarity(each[0] as number) : [],
  );
  if (whole.length > 0) return Math.min(...whole);
  return pieces.length === 0 ? 1 : Math.max(LEAST_OF_PARTS, getRarity(Math.max(...pieces)));
}

function getRarity(piece: number): number {
  const log = Math.log(Math.max(1, piece - FIRST_WORD));
  return Math.min(1, Math.max(0, (log - COMMON_LOG) / (RARE_LOG - COMMON_LOG)));
}
