import { expect, test } from 'vitest';
import { compareTables } from '../../../../bench/static-table/compare.ts';
import { distil, textOfPiece } from '../../../../bench/static-table/distil.ts';
import { principalAxes } from '../../../../bench/static-table/principal-axes.ts';

test('pieces inside a word are asked for as words, placeholders as unknown', () => {
  expect(['port', '##ing', '[unused7]', '[', '##'].map(textOfPiece)).toEqual(['port', 'ing', 'unk', '[', '##']);
});

test('the axes are those along which points lie farthest out, strongest first', () => {
  const points = Float64Array.from([3, 3, 0, -3, -3, 0, 1, -1, 0, -1, 1, 0, 0, 0, 0.1]);
  const [first, second, third] = principalAxes(points, 3, 3) as [Float64Array, Float64Array, Float64Array];
  const half = Math.SQRT1_2;
  expect([...first]).toEqual([expect.closeTo(half), expect.closeTo(half), expect.closeTo(0)]);
  expect(Math.abs((second[0] as number) + (second[1] as number))).toBeCloseTo(0);
  expect([...third]).toEqual([expect.closeTo(0), expect.closeTo(0), expect.closeTo(1)]);
});

test('a table agrees with itself however its axes are turned, and not with another', () => {
  const embeddings = Float32Array.from({ length: 3_000 * 4 }, (_, at) => Math.sin(at * at));
  const table = distil(embeddings, 4, 3);
  const turned = table.rows.map((value, at) => (at % 3 === 1 ? -value : value));
  const bytes = (rows: Int8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> =>
    Uint8Array.from([...new Uint8Array(rows.buffer), ...new Uint8Array(table.scales.buffer)]);
  expect(compareTables(table, bytes(turned))).toEqual({ least: expect.closeTo(1), below: 0 });
  expect(compareTables(table, bytes(table.rows.toReversed())).below).toBeGreaterThan(2_000);
});
