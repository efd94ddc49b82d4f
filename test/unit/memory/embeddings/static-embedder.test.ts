import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Corpus } from '../../../../memory/embeddings/embedder.ts';
import {
  createStaticEmbedder,
  createVocabulary,
  findSimilarity,
  getPieces,
  hashVector,
  loadStaticTable,
  parseStaticTable,
  type StaticTable,
  sumPieces,
  textVector,
  wordPieces,
} from '../../../../memory/embeddings/static-embedder.ts';
import { embedderContract } from '../../../contract/embedder.ts';
import { createHashEmbedder } from '../../../helpers/hash-embedder.ts';
import { encodeStaticTable } from '../../../helpers/static-table.ts';

const { embed, embedQuery } = createStaticEmbedder();

describe('the static embedder', () => {
  embedderContract(async () => createStaticEmbedder());
});

function dot(left: Float32Array, right: Float32Array | null | undefined): number {
  return left.reduce((sum, value, at) => sum + value * (right?.[at] ?? 0), 0);
}

test('what a question weighs is what the corpus says of its pieces', async () => {
  const [port, database] = await embed(['port', 'database']);
  const worth = (rare: number): Corpus => ({
    pieceWeights: (pieces) => new Map(pieces.map((piece) => [piece, piece === port?.pieces[0] ? rare : 1])),
    mean: async () => null,
  });
  const plain = await embedQuery('database port', worth(1));
  const rare = await embedQuery('database port', worth(5));
  expect(dot(rare.vector, port?.vector)).toBeGreaterThan(dot(plain.vector, port?.vector) + 0.1);
  expect(dot(rare.vector, database?.vector)).toBeLessThan(dot(plain.vector, database?.vector) - 0.1);
});

test('pieces are distinct and ascending', async () => {
  const [embedding] = await embed(['the port of the staging port']);
  const pieces = [...(embedding?.pieces ?? [])];
  expect(pieces.length).toBeGreaterThanOrEqual(4);
  expect(pieces).toEqual([...new Set(pieces)].sort((left, right) => left - right));
});

test('only a text with Hangul, kana or Han has a script vector', async () => {
  const [latin, mixed] = await embed(['the port', 'the label says 水']);
  expect(latin?.scriptVector).toBeNull();
  expect(mixed?.scriptVector).toHaveLength(1_024);
});

embedderContract(async () => createHashEmbedder());

test('a misspelled identifier stays close through its n-grams', () => {
  const dot = (left: string, right: string): number =>
    hashVector(left, 256).reduce((sum, value, at) => sum + value * (hashVector(right, 256)[at] ?? 0), 0);
  expect(dot('reconnectTimeout', 'reconectTimeout')).toBeGreaterThan(0.5);
  expect(dot('reconnectTimeout', 'paginationCursor')).toBeLessThan(0.25);
});

const WORDS = ['data', '##base', 'port', '##s', 'p', '.', 'cafe', '水', '##o', '2', '##5', 'base', 'ᄃ', '##ᅦ'];
const vocabulary = createVocabulary(WORDS.join('\n'));
const pieces = (text: string): string[] => wordPieces(text, vocabulary).map((id) => WORDS[id] as string);

test('a word is cut greedily, its later pieces marked as such', () => {
  expect(pieces('Databases')).toEqual(['data', '##base', '##s']);
  expect(pieces('base PORTS.')).toEqual(['base', 'port', '##s', '.']);
});

test('a word that cannot be cut to its end gives nothing', () => {
  expect(pieces('porting database')).toEqual(['data', '##base']);
  expect(pieces('...')).toEqual([]);
  expect(pieces('')).toEqual([]);
});

test('accents and case are left out, Han characters stand alone, Hangul is taken apart', () => {
  expect(pieces('Café CAFE')).toEqual(['cafe', 'cafe']);
  expect(pieces('水水port')).toEqual(['水', '水', 'port']);
  expect(pieces('데')).toEqual(['ᄃ', '##ᅦ']);
});

test('encoded data of more than a hundred characters gives nothing', () => {
  expect(pieces(`p${'o'.repeat(99)}`)).toHaveLength(100);
  expect(pieces(`p${'o'.repeat(100)}`)).toEqual([]);
});

const shipped = loadStaticTable();

function small(): StaticTable {
  const rows = Int8Array.from([3, 4, 0, 127, -127, 0]);
  return parseStaticTable(
    encodeStaticTable({ dimensions: 2, rows, scales: Float32Array.of(1, 0.5, 2) }, ['a', 'b', 'c']),
  );
}

function cosine(left: Float32Array, right: Float32Array): number {
  return left.reduce((sum, value, at) => sum + value * (right[at] as number), 0);
}

const getVector = (text: string): Float32Array => sumPieces(shipped, getPieces(shipped, text));

test('a document is the sum of its pieces, of length 1', () => {
  const table = small();
  expect([...sumPieces(table, getPieces(table, 'a'))]).toEqual([expect.closeTo(0.6), expect.closeTo(0.8)]);
  const [x, y] = [3 - 254, 4 + 63.5];
  const length = Math.hypot(x, y);
  expect([...sumPieces(table, getPieces(table, 'c b a'))]).toEqual([
    expect.closeTo(x / length),
    expect.closeTo(y / length),
  ]);
});

test('a question weighs each piece once for each occurrence', () => {
  const table = small();
  const idf = new Map([
    [0, 2],
    [1, 0],
  ]);
  expect([...sumPieces(table, getPieces(table, 'a b b'), idf)]).toEqual([expect.closeTo(0.6), expect.closeTo(0.8)]);
  const pieces = getPieces(table, 'b a b');
  expect(pieces).toEqual([1, 0, 1]);
  expect([...sumPieces(table, pieces, new Map())]).toEqual([...sumPieces(table, getPieces(table, 'b a b'))]);
});

test('a text without pieces is all zeros, of full length', () => {
  const table = small();
  expect([...sumPieces(table, getPieces(table, '   '))]).toEqual([0, 0]);
  expect([...sumPieces(table, getPieces(table, 'zzz'), new Map())]).toEqual([0, 0]);
});

test('texts are compared by the table, and not at all where it has no vector of one', () => {
  const asked = textVector('how is the database backed up?');
  const [near, far] = ['a nightly job dumps Postgres to the archive', 'the colors of the chart are too bright'];
  expect(findSimilarity(asked, textVector(near))).toBeGreaterThan(findSimilarity(asked, textVector(far)) ?? 1);
  expect(findSimilarity(asked, asked)).toBeCloseTo(1);
  expect([textVector(''), textVector('데이터베이스 백업은 어떻게 해?'), findSimilarity(asked, null)]).toEqual([
    null,
    null,
    null,
  ]);
});

test('a table survives its own file, wherever in a buffer the file lies', () => {
  const bytes = encodeStaticTable(small(), ['a', 'b', 'c']);
  const shifted = new Uint8Array(bytes.length + 1);
  shifted.set(bytes, 1);
  expect(parseStaticTable(shifted.subarray(1)).scales).toEqual(small().scales);
  expect(parseStaticTable(shifted.subarray(1)).rows).toEqual(small().rows);
});

test('a file that is cut short, or another file, is refused', () => {
  const bytes = encodeStaticTable(small(), ['a', 'b', 'c']);
  expect(() => parseStaticTable(bytes.slice(0, -2))).toThrow('cut short');
  expect(() => parseStaticTable(bytes.slice(0, 20))).toThrow('cut short');
  expect(() => parseStaticTable(new TextEncoder().encode('something else entirely'))).toThrow('not a table');
  expect(() => parseStaticTable(new Uint8Array(3))).toThrow('not a table');
});

test('the table of the package knows what words mean', () => {
  expect([shipped.vocabulary.size, shipped.dimensions]).toEqual([30_522, 256]);
  const near = cosine(getVector('the car would not start'), getVector('an automobile with a dead engine'));
  const far = cosine(getVector('the car would not start'), getVector('bake the bread for an hour'));
  expect(near).toBeGreaterThan(far + 0.1);
});

test('any text has a vector of length 1, or of zeros where it has no pieces', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (text) => {
      const vector = getVector(text);
      const length = Math.sqrt(cosine(vector, vector));
      expect(length).toBeCloseTo(getPieces(shipped, text).length === 0 ? 0 : 1, 4);
    }),
  );
});
