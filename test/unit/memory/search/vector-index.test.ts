import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createVectorBook } from '../../../../memory/search/vector-index.ts';

const vector = fc.array(fc.integer({ min: -3, max: 3 }), { minLength: 5, maxLength: 5 });
const row = fc.record({ vector, group: fc.constantFrom(0, 1, null), stays: fc.boolean() });

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
      const groupOf = (slot: number): number => rows[slot]?.group ?? -1;
      const found = book.nearest(Float32Array.from(asked), groupOf, [limit, 2]);
      for (const [of, most] of [limit, 2].entries()) {
        const exact = rows
          .filter(({ group, stays }) => group === of && stays)
          .map((each) => cosine(each.vector, asked))
          .filter((score) => score > 1e-3)
          .sort((one, other) => other - one)
          .slice(0, most);
        const { slots = [], scores = [] } = found[of] ?? {};
        expect(slots.every((slot) => rows[slot]?.group === of && rows[slot]?.stays)).toBe(true);
        expect(scores.filter((score) => score > 1e-3)).toHaveLength(exact.length);
        for (const [at, score] of exact.entries()) expect(scores[at]).toBeCloseTo(score, 3);
      }
    }),
  );
});

test('with more rows than it may hold it lets go of all, and begins again when cleared', () => {
  const book = createVectorBook(3, 0, 4);
  const one = Float32Array.of(1, 1, 1);
  for (let slot = 0; slot < 4; slot += 1) book.put(slot, one);
  expect(book.isWhole()).toBe(true);
  book.put(4, one);
  expect(book.isWhole()).toBe(false);
  expect(book.nearest(one, () => 0, [9])).toEqual([{ slots: [], scores: [] }]);
  book.clear();
  expect(book.isWhole()).toBe(true);
  expect(createVectorBook(3, 5, 4).isWhole()).toBe(false);
  expect(createVectorBook(1_000_000, 21).isWhole()).toBe(false);
});
