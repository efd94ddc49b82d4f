import { expect, test } from 'vitest';
import { centerVector, createMeanVector } from '../../../../memory/embeddings/vectors.ts';

test('the mean of the corpus is taken away, and what is left has length 1', () => {
  const vector = centerVector(Float32Array.of(3.5, 4.5), Float32Array.of(0.5, 0.5));
  expect([...vector]).toEqual([expect.closeTo(0.6), expect.closeTo(0.8)]);
});

test('without a mean the vector stays as it is', () => {
  const vector = Float32Array.of(0.6, 0.8);
  expect(centerVector(vector, null)).toBe(vector);
});

test('a mean is of a hundred vectors at least, and sampled again when they have doubled', async () => {
  const asked: number[] = [];
  let value = 1;
  const mean = createMeanVector(async (most) => {
    asked.push(most);
    return [Float32Array.of(value, 0), Float32Array.of(value, 2)];
  });
  expect(await mean(99)).toBeNull();
  expect(await mean(100)).toEqual(Float32Array.of(1, 1));
  value = 3;
  expect(await mean(199)).toEqual(Float32Array.of(1, 1));
  expect(await mean(200)).toEqual(Float32Array.of(3, 1));
  expect(asked).toEqual([2_000, 2_000]);
});

test('a sample that failed is taken again', async () => {
  let fails = true;
  const mean = createMeanVector(async () => {
    if (fails) throw new Error('busy');
    return [Float32Array.of(1)];
  });
  await expect(mean(100)).rejects.toThrow('busy');
  fails = false;
  expect(await mean(100)).toEqual(Float32Array.of(1));
});
