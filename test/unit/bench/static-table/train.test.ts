import { expect, test } from 'vitest';
import { type Examples, train } from '../../../../bench/static-table/train.ts';
import { toUnit } from '../../../../memory/embeddings/vectors.ts';

const DIMENSIONS = 4;

test('sums of rows come to point where the texts do, the same way each time', () => {
  const teacher = numbers(20 * DIMENSIONS, 1);
  const examples = createExamples(teacher);
  const [rows, again] = [numbers(20 * DIMENSIONS, 2), numbers(20 * DIMENSIONS, 2)];
  const first = train(rows, examples, { dimensions: DIMENSIONS, rounds: 1, rate: 0 });
  const last = train(rows, examples, { dimensions: DIMENSIONS, rounds: 60, rate: 0.05 });
  expect(first).toBeLessThan(0.6);
  expect(last).toBeGreaterThan(0.97);
  train(again, examples, { dimensions: DIMENSIONS, rounds: 60, rate: 0.05 });
  expect(again).toEqual(rows);
});

test('rows of pieces that no text has stay as they were', () => {
  const rows = numbers(21 * DIMENSIONS, 3);
  const unseen = rows.slice(20 * DIMENSIONS);
  train(rows, createExamples(numbers(20 * DIMENSIONS, 1)), { dimensions: DIMENSIONS, rounds: 5, rate: 0.05 });
  expect(rows.slice(20 * DIMENSIONS)).toEqual(unseen);
});

function numbers(count: number, seed: number): Float32Array {
  return Float32Array.from({ length: count }, (_, at) => Math.sin(seed * 1_000 + at * at));
}

/** Texts of three pieces of twenty, and where a teacher's rows for them point. */
function createExamples(teacher: Float32Array): Examples {
  const texts = Array.from({ length: 600 }, (_, at) => [at % 20, (at * 7 + 3) % 20, (at * at) % 20]);
  const targets = new Float32Array(texts.length * DIMENSIONS);
  for (const [at, text] of texts.entries()) {
    const sum = new Float32Array(DIMENSIONS);
    for (const id of text) {
      for (const axis of sum.keys()) sum[axis] = (sum[axis] as number) + (teacher[id * DIMENSIONS + axis] as number);
    }
    targets.set(toUnit(sum), at * DIMENSIONS);
  }
  return { texts, targets };
}
