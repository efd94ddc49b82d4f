import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createVectorTable } from '../../../../memory/core/vector-table.ts';

const tables = fc.integer({ min: 1, max: 70 }).chain((dimensions) => {
  const vector = fc.array(fc.integer({ min: -9, max: 9 }), { minLength: dimensions, maxLength: dimensions });
  return fc.record({
    dimensions: fc.constant(dimensions),
    asked: vector,
    rows: fc.array(vector, { minLength: 1, maxLength: 90 }),
    from: fc.nat({ max: 90 }),
  });
});

function product(one: readonly number[], other: readonly number[]): number {
  return one.reduce((sum, value, axis) => sum + value * (other[axis] as number), 0);
}

test('products are those of all rows asked for, whatever their length and how many there are', () => {
  fc.assert(
    fc.property(tables, ({ dimensions, asked, rows, from }) => {
      const table = createVectorTable(dimensions);
      for (const [row, vector] of rows.entries()) table.set(row, Float32Array.from(vector));
      const found = table.products(Float32Array.from(asked), from, rows.length);
      expect([...found]).toEqual(rows.slice(from).map((row) => product(row, asked)));
      table.copy(rows.length - 1, 0);
      const [first] = table.products(Float32Array.from(asked), 0, 1);
      expect(first).toBe(product(rows.at(-1) as number[], asked));
    }),
  );
});

test('an empty table has no products, and one that was cleared can be filled again', () => {
  const table = createVectorTable(3);
  const one = Float32Array.of(1, 2, 3);
  expect(table.products(one, 0, 0)).toHaveLength(0);
  table.set(0, one);
  table.clear();
  expect(table.products(one, 0, 1)).toHaveLength(0);
  table.set(0, one);
  expect([...table.products(one, 0, 1)]).toEqual([14]);
});
