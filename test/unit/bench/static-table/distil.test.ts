import { expect, test } from 'vitest';
import { createProjection, firstRows, quantize, textOfPiece } from '../../../../bench/static-table/distil.ts';
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

test('texts are moved to the axes on which they differ, without what they share', () => {
  const project = createProjection(Float32Array.from([5, 1, 7, 5, -1, 7, 5, 1, 7, 5, -1, 7]), 3, 1);
  expect([...project(Float32Array.from([9, 3, 1]))]).toEqual([expect.closeTo(3)]);
});

test('rows start with length 1 on average, and common pieces shorter than rare ones', () => {
  const count = 3_000;
  const rows = firstRows(new Float32Array(count).fill(2), 1, 1, (point) => point);
  expect(rows.reduce((sum, value) => sum + value, 0) / count).toBeCloseTo(1);
  expect(rows[2_000] as number).toBeLessThan((rows[2_999] as number) / 2);
});

test('a number is rounded to a step of a 127th of the greatest of its row', () => {
  const { rows, scales } = quantize(Float32Array.from([1, -0.5, 0, 0, 4, -4]), 2);
  expect([...rows]).toEqual([127, -63, 0, 0, 127, -127]);
  expect([...scales]).toEqual([expect.closeTo(1 / 127), 0, expect.closeTo(4 / 127)]);
});
