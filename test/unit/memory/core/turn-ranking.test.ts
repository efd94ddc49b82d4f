import { expect, test } from 'vitest';
import { fuseByRank } from '../../../../memory/core/rank-fusion.ts';
import { rankTurns, TURN_WEIGHTS } from '../../../../memory/core/turn-ranking.ts';
import type { LaneHits } from '../../../../memory/ports.ts';
import { foundTurn, hit, lanes } from '../../../helpers/lane-hits.ts';

const rules = { mode: 'score', weights: TURN_WEIGHTS, limit: 200 } as const;
const order = (hits: LaneHits, question = 'port'): string[] =>
  rankTurns(question, hits, rules).map(({ row }) => row.turn);

test('full text is divided by its best and adds to the likeness of vectors', () => {
  const [a, b] = [foundTurn('a'), foundTurn('b')];
  const [first, second] = rankTurns('port', lanes({ raw: [hit(a, 8), hit(b, 4)], meaning: [hit(b, 0.5)] }), rules);
  expect([first?.row.turn, first?.parts]).toEqual(['b', { raw: 0.5, meaning: 0.75 }]);
  expect([second?.row.turn, second?.parts]).toEqual(['a', { raw: 1 }]);
  expect(first?.lanes).toEqual({ raw: { rank: 2, score: 4 }, meaning: { rank: 1, score: 0.5 } });
});

test('a turn beside a good one is lent a share of it', () => {
  const [a, b, c] = [foundTurn('a'), foundTurn('b', { before: ['a'] }), foundTurn('c', { before: ['x'] })];
  const hits = lanes({ raw: [hit(a, 10), hit(c, 1), hit(b, 1)] });
  expect(order(hits)).toEqual(['a', 'b', 'c']);
  expect(rankTurns('port', hits, rules)[1]?.parts).toEqual({ raw: 0.1, before: 0.4 });
});

test('a window counts for the turn it ends with and for the one in its middle', () => {
  const a = foundTurn('a');
  const d = foundTurn('d', { before: ['c', 'b', 'a'] });
  const ranked = rankTurns('port', lanes({ raw: [hit(a, 1)], window: [hit(d, 6), hit(a, 3)] }), rules);
  const partsOf = (turn: string) => ranked.find(({ row }) => row.turn === turn)?.parts;
  expect(partsOf('a')).toMatchObject({ window: TURN_WEIGHTS.window * 0.75 });
  expect(partsOf('d')).toMatchObject({ window: TURN_WEIGHTS.window });
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
  expect(ranked[1]?.parts).toEqual({ fact: TURN_WEIGHTS.fact });
});

test('a turn that a full vector lane left out counts for a little less than its last hit', () => {
  const hits = lanes({ raw: [hit(foundTurn('a'), 1)], meaning: [hit(foundTurn('b'), 0.5)] });
  const [first] = rankTurns('port', hits, { ...rules, limit: 1 });
  expect(first?.parts).toEqual({ raw: 1, meaning: expect.closeTo(1.5 * 0.4) as number });
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
  expect(fused.get('n:a')?.score).toBe(1);
  expect(fused.get('n:b')?.score).toBeCloseTo(61 / 62 / 2);
  const comet = fuseByRank(hits, 'comet');
  expect(comet.get('n:a')?.score).toBeCloseTo(0.6 + 0.4 * 0.9);
  expect(comet.get('n:b')?.score).toBeCloseTo((0.6 * (6 / 7)) / 2);
});
