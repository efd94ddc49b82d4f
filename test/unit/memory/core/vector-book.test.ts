import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createVectorBook } from '../../../../memory/core/vector-book.ts';

const vector = fc.array(fc.integer({ min: -3, max: 3 }), { minLength: 5, maxLength: 5 });
const row = fc.record({ vector, group: fc.constantFrom('a', 'b', null), stays: fc.boolean() });

function cosine(one: readonly number[], other: readonly number[]): number {
  const dot = (left: readonly number[], right: readonly number[]): number =>
    left.reduce((sum, value, at) => sum + value * (right[at] ?? 0), 0);
  return dot(one, other) / Math.sqrt(dot(one, one) * dot(other, other) || 1);
}

test('the nearest of each group are those that comparing all gives, whatever was removed', () => {
  fc.assert(
    fc.property(fc.array(row, { maxLength: 40 }), vector, fc.integer({ min: 1, max: 4 }), (rows, asked, limit) => {
      const book = createVectorBook(5);
      for (const [slot, each] of rows.entries()) book.put(slot, Float32Array.from(each.vector));
      for (const [slot, { stays }] of rows.entries()) if (!stays) book.remove(slot);
      const groupOf = (slot: number): string | null => rows[slot]?.group ?? null;
      const found = book.nearest(Float32Array.from(asked), groupOf, new Map([['a', limit]]));
      const exact = rows
        .filter(({ group, stays }) => group === 'a' && stays)
        .map((each) => cosine(each.vector, asked))
        .filter((score) => score > 1e-6)
        .sort((one, other) => other - one)
        .slice(0, limit);
      expect(found.filter(({ score }) => score > 1e-6)).toHaveLength(exact.length);
      for (const [at, score] of exact.entries()) expect(found[at]?.score).toBeCloseTo(score, 5);
    }),
  );
});

test('with more numbers than it may hold it lets go of all, and begins again when cleared', () => {
  const dimensions = 640_000;
  const book = createVectorBook(dimensions);
  for (let slot = 0; slot < 4; slot += 1) book.put(slot, new Float32Array(dimensions).fill(1));
  expect(book.isWhole()).toBe(true);
  book.put(4, new Float32Array(dimensions).fill(1));
  expect(book.isWhole()).toBe(false);
  expect(book.nearest(new Float32Array(dimensions).fill(1), () => 'a', new Map([['a', 9]]))).toEqual([]);
  book.clear();
  expect(book.isWhole()).toBe(true);
  expect(createVectorBook(dimensions, 5).isWhole()).toBe(false);
});
