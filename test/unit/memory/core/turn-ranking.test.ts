import { expect, test } from 'vitest';
import { fuseByRank } from '../../../../memory/core/rank-fusion.ts';
import { type RankedTurn, rankTurns, TURN_WEIGHTS } from '../../../../memory/core/turn-ranking.ts';
import type { LaneHits } from '../../../../memory/ports.ts';
import { foundTurn, hit, lanes } from '../../../helpers/lane-hits.ts';

const rules = { mode: 'score', weights: TURN_WEIGHTS, limit: 200 } as const;
/** What a score of 1 is before it is brought to that scale. */
const { raw, meaning, expanded, before, window } = TURN_WEIGHTS;
const FULL = (raw + meaning + expanded) * (1 + before) + window;
const worth = (turn: RankedTurn | undefined): number => (turn?.score ?? 0) * FULL;
const order = (hits: LaneHits, question = 'port'): string[] =>
  rankTurns(question, hits, rules).map(({ row }) => row.turn);

test('full text is divided by its best and adds to the likeness of vectors', () => {
  const [a, b] = [foundTurn('a'), foundTurn('b')];
  const [first, second] = rankTurns('port', lanes({ raw: [hit(a, 8), hit(b, 4)], meaning: [hit(b, 0.5)] }), rules);
  expect([first?.row.turn, worth(first)]).toEqual(['b', expect.closeTo(0.5 + 0.75)]);
  expect([second?.row.turn, worth(second)]).toEqual(['a', expect.closeTo(1)]);
  expect(first?.lanes).toMatchObject({ raw: { rank: 2, score: 4 }, meaning: { rank: 1, score: 0.5 } });
});

test('a turn beside a good one is lent a share of it', () => {
  const [a, b, c] = [foundTurn('a'), foundTurn('b', { before: ['a'] }), foundTurn('c', { before: ['x'] })];
  const hits = lanes({ raw: [hit(a, 10), hit(c, 1), hit(b, 1)] });
  expect(order(hits)).toEqual(['a', 'b', 'c']);
  expect(worth(rankTurns('port', hits, rules)[1])).toBeCloseTo(0.1 + 0.4);
});

test('a window counts for the turn it ends with and for the one in its middle', () => {
  const a = foundTurn('a');
  const d = foundTurn('d', { before: ['c', 'b', 'a'] });
  const ranked = rankTurns('port', lanes({ raw: [hit(a, 1)], window: [hit(d, 6), hit(a, 3)] }), rules);
  const worthOf = (turn: string) => worth(ranked.find(({ row }) => row.turn === turn));
  expect(worthOf('a')).toBeCloseTo(TURN_WEIGHTS.raw + TURN_WEIGHTS.window * 0.75);
  expect(worthOf('d')).toBeCloseTo(TURN_WEIGHTS.window);
});

test('the date that a question names and the time that it asks for raise the turns that have them', () => {
  const old = foundTurn('old', { created_at_ms: Date.UTC(2022, 1, 1) });
  const may = foundTurn('may', { created_at_ms: Date.UTC(2023, 4, 8), timed: true });
  const hits = lanes({ raw: [hit(old, 2), hit(may, 1)] });
  expect(order(hits)).toEqual(['old', 'may']);
  expect(order(hits, 'the port in May 2023')).toEqual(['may', 'old']);
  expect(order(hits, 'when did it move?')).toEqual(['may', 'old']);
});

test('facts lead to turns that no other lane found', () => {
  const fact = foundTurn('', { row_id: 'n#0', kind: 'fact', sources: ['a', 'z'] });
  const ranked = rankTurns('port', lanes({ raw: [hit(foundTurn('a'), 1)], fact: [hit(fact, 3)] }), rules);
  expect(ranked.map(({ row }) => [row.turn, row.row_id])).toEqual([
    ['a', 'n:a'],
    ['z', 'n:z'],
  ]);
  expect(worth(ranked[1])).toBeCloseTo(TURN_WEIGHTS.fact);
});

test('a turn that a full vector lane left out counts for a little less than its last hit', () => {
  const hits = lanes({ raw: [hit(foundTurn('a'), 1)], meaning: [hit(foundTurn('b'), 0.5)] });
  const [first] = rankTurns('port', hits, { ...rules, limit: 1 });
  expect(worth(first)).toBeCloseTo(1 + 1.5 * 0.4);
});

test('nothing found is nothing ranked; no score is below zero or not a number', () => {
  expect(rankTurns('port', lanes({}), rules)).toEqual([]);
  const ranked = rankTurns('port', lanes({ meaning: [hit(foundTurn('a'), 0)] }), rules);
  expect(ranked.map(({ score }) => score)).toEqual([0]);
});

test('reciprocal ranks: first in every lane is 1, and lanes add up', () => {
  const [a, b] = [foundTurn('a'), foundTurn('b')];
  const hits = lanes({ raw: [hit(a, 9), hit(b, 1)], meaning: [hit(a, 0.9)] });
  const fused = fuseByRank(hits, 'rrf');
  expect(fused.get('n:a')).toBe(1);
  expect(fused.get('n:b')).toBeCloseTo(61 / 62 / 2);
  const comet = fuseByRank(hits, 'comet');
  expect(comet.get('n:a')).toBeCloseTo(0.6 + 0.4 * 0.9);
  expect(comet.get('n:b')).toBeCloseTo((0.6 * (6 / 7)) / 2);
});
