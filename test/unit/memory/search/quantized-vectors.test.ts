import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createVectorTable } from '../../../../memory/search/quantized-vectors.ts';

const tables = fc.integer({ min: 1, max: 70 }).chain((dimensions) => {
  const vector = fc.array(fc.integer({ min: -9, max: 9 }), { minLength: dimensions, maxLength: dimensions });
  return fc.record({
    dimensions: fc.constant(dimensions),
    asked: vector,
    rows: fc.array(vector, { minLength: 1, maxLength: 90 }),
    from: fc.nat({ max: 90 }),
  });
});

function unit(vector: readonly number[]): Float32Array {
  const length = Math.hypot(...vector) || 1;
  return Float32Array.from(vector, (value) => value / length);
}

function product(one: Float32Array, other: Float32Array): number {
  return one.reduce((sum, value, axis) => sum + value * (other[axis] as number), 0);
}

test('products are those of all rows asked for, whatever their length and how many there are', () => {
  fc.assert(
    fc.property(tables, ({ dimensions, asked, rows, from }) => {
      const table = createVectorTable(dimensions, dimensions % 3 === 0 ? 40 : undefined);
      const vectors = rows.map(unit);
      for (const [row, vector] of vectors.entries()) table.set(row, vector);
      const found = table.products(unit(asked), from, rows.length);
      expect(found).toHaveLength(Math.max(0, rows.length - from));
      for (const [at, value] of found.entries()) {
        expect(Math.abs(value - product(vectors[from + at] as Float32Array, unit(asked)))).toBeLessThan(2e-4);
      }
      table.copy(rows.length - 1, 0);
      const [first = Number.NaN] = table.products(unit(asked), 0, 1);
      expect(Math.abs(first - product(vectors.at(-1) as Float32Array, unit(asked)))).toBeLessThan(2e-4);
    }),
  );
});

test('the longest sums there are stay in place, and opposite vectors give -1', () => {
  for (const dimensions of [1, 2, 128, 384, 1_024]) {
    const table = createVectorTable(dimensions);
    const even = unit(new Array<number>(dimensions).fill(1));
    table.set(0, even);
    table.set(
      1,
      even.map((value) => -value),
    );
    const [same, opposite] = table.products(even, 0, 2);
    expect([same, opposite]).toEqual([expect.closeTo(1, 3), expect.closeTo(-1, 3)]);
  }
});

test('an empty table has no products, and one that was cleared can be filled again', () => {
  const table = createVectorTable(3);
  const one = unit([1, 2, 3]);
  expect(table.products(one, 0, 0)).toHaveLength(0);
  table.set(0, one);
  table.clear();
  expect(table.products(one, 0, 1)).toHaveLength(0);
  table.set(0, one);
  expect(table.products(one, 0, 1)[0]).toBeCloseTo(1, 4);
});
