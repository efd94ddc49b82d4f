import { expect, test } from 'vitest';
import { createRecentTurns } from '../../../../../memory/search/lancedb/write-buffer.ts';
import { turnRow } from '../../../../contract/node-index.ts';

test('knows no turn until all others are in the index, and then those that come', () => {
  const recent = createRecentTurns();
  recent.put([turnRow('n', 'early', 'not held')]);
  expect([recent.isWhole(), recent.words(['early']).size]).toEqual([false, 0]);
  recent.begin();
  recent.put([turnRow('n', 'a', 'one'), turnRow('m', 'b', 'two')]);
  recent.put([turnRow('n', 'a', 'changed')]);
  recent.removeNodes(['m']);
  expect(recent.words(['a', 'b', 'c'])).toEqual(new Map([['a', { text: 'changed', origin: 'tool' }]]));
});

test('gives up rather than hold more than a bounded number of characters', () => {
  const recent = createRecentTurns();
  recent.begin();
  const long = 'x'.repeat(100_000);
  for (let at = 0; at < 50; at += 1) recent.put([turnRow('n', 'same', long)]);
  expect(recent.isWhole()).toBe(true);
  for (let at = 0; at < 30; at += 1) recent.put([turnRow('n', `t${at}`, long)]);
  expect([recent.isWhole(), recent.words(['same', 't3']).size]).toEqual([false, 0]);
});
