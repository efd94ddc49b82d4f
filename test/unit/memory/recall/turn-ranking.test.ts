import { expect, test } from 'vitest';
import { type RankingRules, rankTurns, TURN_WEIGHTS } from '../../../../memory/recall/turn-ranking.ts';
import type { Found } from '../../../../memory/search/node-index.ts';
import { fuseByRank, turnKey } from '../../../../memory/search/rrf.ts';
import { foundTurn, hit, lanes } from '../../../helpers/lane-hits.ts';

const rules: RankingRules = { mode: 'score', weights: TURN_WEIGHTS, limit: 200 };
/** What a score of 1 is before it is brought to that scale. */
const { raw, meaning, expanded, before, window } = TURN_WEIGHTS;
const FULL = (raw + meaning + expanded) * (1 + before) + window;

/** Turn, node and worth, best first. */
function ranked(hits: Found, question = 'port', asked = rules) {
  const { turns, nodes, scores } = rankTurns(question, hits, asked);
  const { nameOf } = hits.rows;
  return turns.map((turn, nth) => ({
    turn: nameOf(turn),
    node: nameOf(nodes[nth] as number),
    worth: (scores[nth] as number) * FULL,
  }));
}

const order = (hits: Found, question?: string): string[] => ranked(hits, question).map(({ turn }) => turn);

test('full text is divided by its best and adds to the likeness of vectors', () => {
  const [a, b] = [foundTurn('a'), foundTurn('b')];
  const hits = lanes({ raw: [hit(a, 8), hit(b, 4)], meaning: [hit(b, 0.5)] });
  expect(ranked(hits)).toEqual([
    { turn: 'b', node: 'n', worth: expect.closeTo(0.5 + 0.75) },
    { turn: 'a', node: 'n', worth: expect.closeTo(1) },
  ]);
  const { found } = rankTurns('port', hits, rules);
  expect([found('raw', 0), found('meaning', 0)]).toEqual([
    { rank: 2, score: 4 },
    { rank: 1, score: 0.5 },
  ]);
  expect(found('meaning', 1)).toBeNull();
});

test('a turn beside a good one is lent a share of it', () => {
  const [a, b, c] = [foundTurn('a'), foundTurn('b', { before: ['a'] }), foundTurn('c', { before: ['x'] })];
  const hits = lanes({ raw: [hit(a, 10), hit(c, 1), hit(b, 1)] });
  expect(order(hits)).toEqual(['a', 'b', 'c']);
  expect(ranked(hits)[1]?.worth).toBeCloseTo(0.1 + 0.4);
});

test('a window counts for the turn it ends with and for the one in its middle', () => {
  const a = foundTurn('a');
  const d = foundTurn('d', { before: ['c', 'b', 'a'] });
  const found = ranked(lanes({ raw: [hit(a, 1)], window: [hit(d, 6), hit(a, 3)] }));
  const worthOf = (name: string) => found.find(({ turn }) => turn === name)?.worth;
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
  const hits = lanes({ raw: [hit(foundTurn('a'), 1)], fact: [hit(fact, 3)] });
  expect(ranked(hits)).toEqual([
    { turn: 'a', node: 'n', worth: expect.closeTo(1 + TURN_WEIGHTS.fact) },
    { turn: 'z', node: 'n', worth: expect.closeTo(TURN_WEIGHTS.fact) },
  ]);
  expect(rankTurns('port', hits, rules).found('fact', 1)).toEqual({ rank: 1, score: 3 });
});

test('a turn that a full vector lane left out counts for a little less than its last hit', () => {
  const hits = lanes({ raw: [hit(foundTurn('a'), 1)], meaning: [hit(foundTurn('b'), 0.5)] });
  const [first] = ranked(hits, 'port', { ...rules, limit: 1 });
  expect(first?.worth).toBeCloseTo(1 + 1.5 * 0.4);
});

test('nothing found is nothing ranked; no score is below zero or not a number', () => {
  expect(ranked(lanes({}))).toEqual([]);
  expect(ranked(lanes({ meaning: [hit(foundTurn('a'), 0)] })).map(({ worth }) => worth)).toEqual([0]);
});

test('reciprocal ranks: first in every lane is 1, and lanes add up', () => {
  const [a, b] = [foundTurn('a'), foundTurn('b')];
  const hits = lanes({ raw: [hit(a, 9), hit(b, 1)], meaning: [hit(a, 0.9)] });
  const keyOf = (turn: string): number => turnKey(hits.rows.numberOf('n'), hits.rows.numberOf(turn));
  const fused = fuseByRank(hits, 'rrf');
  expect(fused.get(keyOf('a'))).toBe(1);
  expect(fused.get(keyOf('b'))).toBeCloseTo(61 / 62 / 2);
  const comet = fuseByRank(hits, 'comet');
  expect(comet.get(keyOf('a'))).toBeCloseTo(0.6 + 0.4 * 0.9);
  expect(comet.get(keyOf('b'))).toBeCloseTo((0.6 * (6 / 7)) / 2);
});
