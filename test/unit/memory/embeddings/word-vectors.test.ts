import fc from 'fast-check';
import { expect, test } from 'vitest';
import { loadStaticTable } from '../../../../memory/embeddings/static-encoder.ts';
import {
  documentVector,
  encodeStaticTable,
  parseStaticTable,
  piecesOf,
  pieceVectors,
  queryVector,
  type StaticTable,
  weighPieces,
} from '../../../../memory/embeddings/word-vectors.ts';

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

const vectorOf = (text: string): Float32Array => documentVector(shipped, piecesOf(shipped, text));

test('a document is the sum of its pieces, of length 1', () => {
  const table = small();
  expect([...documentVector(table, piecesOf(table, 'a'))]).toEqual([expect.closeTo(0.6), expect.closeTo(0.8)]);
  const [x, y] = [3 - 254, 4 + 63.5];
  const length = Math.hypot(x, y);
  expect([...documentVector(table, piecesOf(table, 'c b a'))]).toEqual([
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
  expect([...queryVector(table, 'a b b', () => idf)]).toEqual([expect.closeTo(0.6), expect.closeTo(0.8)]);
  const pieces = pieceVectors(table, 'b a b');
  expect(pieces.ids).toEqual([1, 0]);
  expect(pieces.counts).toEqual([2, 1]);
  expect([...weighPieces(pieces, new Map())]).toEqual([...documentVector(table, piecesOf(table, 'b a b'))]);
});

test('a text without pieces is all zeros, of full length', () => {
  const table = small();
  expect([...documentVector(table, piecesOf(table, '   '))]).toEqual([0, 0]);
  expect([...queryVector(table, 'zzz', () => new Map())]).toEqual([0, 0]);
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
  expect([shipped.vocabulary.size, shipped.dimensions]).toEqual([30_522, 128]);
  const near = cosine(vectorOf('the car would not start'), vectorOf('an automobile with a dead engine'));
  const far = cosine(vectorOf('the car would not start'), vectorOf('bake the bread for an hour'));
  expect(near).toBeGreaterThan(far + 0.1);
});

test('any text has a vector of length 1, or of zeros where it has no pieces', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (text) => {
      const vector = vectorOf(text);
      const length = Math.sqrt(cosine(vector, vector));
      expect(length).toBeCloseTo(piecesOf(shipped, text).length === 0 ? 0 : 1, 4);
    }),
  );
});
