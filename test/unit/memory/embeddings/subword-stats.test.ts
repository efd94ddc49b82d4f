import { expect, test } from 'vitest';
import { createPieceStats } from '../../../../memory/embeddings/subword-stats.ts';

const idf = (turns: number, df: number): number => Math.log(1 + (turns - df + 0.5) / (df + 0.5));

test('a piece is worth more the fewer turns of the project hold it', () => {
  const stats = createPieceStats();
  stats.add('one', [1, 2]);
  stats.add('one', [2, 5_000]);
  stats.add('other', [2, 3]);
  expect(stats.idf([1, 2, 3, 5_000], { project: 'one' })).toEqual(
    new Map([
      [1, idf(2, 1)],
      [2, idf(2, 2)],
      [3, idf(2, 0)],
      [5_000, idf(2, 1)],
    ]),
  );
  expect(stats.idf([2], {})).toEqual(new Map([[2, idf(3, 3)]]));
  expect(stats.idf([2], { project: 'unknown' })).toEqual(new Map([[2, idf(0, 0)]]));
});

test('what was removed counts no more', () => {
  const stats = createPieceStats();
  stats.add('one', [1]);
  stats.add('one', [1, 2]);
  stats.remove('one', [1, 2]);
  stats.remove('unknown', [1]);
  expect(stats.idf([1, 2], {})).toEqual(
    new Map([
      [1, idf(1, 1)],
      [2, idf(1, 0)],
    ]),
  );
  stats.clear();
  expect(stats.idf([1], {})).toEqual(new Map([[1, idf(0, 0)]]));
});
