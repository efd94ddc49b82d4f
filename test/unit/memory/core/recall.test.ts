import { expect, test } from 'vitest';
import { fuse, isNearDuplicate } from '../../../../memory/core/recall.ts';
import type { LaneHits } from '../../../../memory/ports.ts';
import { nodeRow, turnRow } from '../../../contract/node-index.ts';

const none: LaneHits = { fts: [], raw: [], summary: [], trigger: [] };
const weights = { fts: 1, raw: 1, summary: 1, trigger: 1 };

test('lanes are divided by their best and added by weight', () => {
  const [a, b] = [nodeRow('a', 'x'), nodeRow('b', 'x')];
  const hits: LaneHits = {
    ...none,
    fts: [
      { row: a, score: 8 },
      { row: b, score: 4 },
    ],
    summary: [{ row: b, score: 0.5 }],
  };
  expect(fuse(hits, { fts: 1, raw: 1, summary: 2, trigger: 0 })).toMatchObject([
    { nodeId: 'b', score: 0.625, similarity: 0.5, lanes: { fts: { rank: 2, score: 4 }, summary: { rank: 1 } } },
    { nodeId: 'a', score: 0.25, similarity: 0, lanes: { fts: { rank: 1, score: 8 } } },
  ]);
});

test('turns speak for their node: the best one counts, and all are handed on best first', () => {
  const hits: LaneHits = {
    ...none,
    raw: [
      { row: turnRow('a', 't1', 'x'), score: 10 },
      { row: turnRow('b', 't3', 'x'), score: 9 },
      { row: turnRow('a', 't2', 'x'), score: 8 },
    ],
    summary: [{ row: turnRow('a', 't2', 'x'), score: 0.9 }],
  };
  const [first, second] = fuse(hits, weights);
  expect(first).toMatchObject({ nodeId: 'a', lanes: { raw: { rank: 1, score: 10 } } });
  expect(first?.turns.map(({ turn }) => turn)).toEqual(['t2', 't1']);
  expect(second).toMatchObject({ nodeId: 'b', score: 0.225 });
});

test('empty lanes and a lane without weight decide nothing', () => {
  expect(fuse(none, weights)).toEqual([]);
  const hits = { ...none, fts: [{ row: nodeRow('a', 'x'), score: 1 }] };
  expect(fuse(hits, { fts: 0, raw: 0, summary: 0, trigger: 0 })).toMatchObject([{ nodeId: 'a', score: 0 }]);
});

test('a text that says the same with a word more is a duplicate', () => {
  const said = 'sessions are evicted by redis because of the policy allkeys lru';
  expect(isNearDuplicate(said, said)).toBe(true);
  expect(isNearDuplicate(said, `Again: ${said}.`)).toBe(true);
});

test('texts that differ in a value, a word or a negation are not', () => {
  expect(isNearDuplicate('staging runs on port 5432', 'staging runs on port 5433')).toBe(false);
  expect(isNearDuplicate('indent with tabs in this repo', 'indent with spaces in this repo')).toBe(false);
  expect(isNearDuplicate('we do use npm in this one repo', 'we do not use npm in this one repo')).toBe(false);
  expect(isNearDuplicate('pool size of the worker pool is set', 'pool size of the worker pool is set 8')).toBe(false);
});
