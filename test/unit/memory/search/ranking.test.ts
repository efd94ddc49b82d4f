import { expect, test } from 'vitest';
import { Config } from '../../../../common/config.ts';
import { namedDate } from '../../../../memory/search/dates.ts';
import { asksWhen, lanesOfTurns, type RankingRules, rankTurns, tellsTime } from '../../../../memory/search/ranking.ts';
import type { Hit } from '../../../../memory/search/search-index.ts';
import { getHits, nodeHit, turnHit } from '../../../helpers/lane-hits.ts';

const { weights, rrfK, comet } = Config.parse({}).recall;
const rules: RankingRules = { mode: 'score', weights, rrfK, comet, limit: 200 };
const NOW = Date.UTC(2023, 4, 9, 12);
/** What a score of 1 is before it is brought to that scale. */
const FULL = (weights.raw + weights.meaning) * (1 + weights.before) + weights.window;

/** Turn, node and worth, best first. */
function ranked(hits: readonly Hit[], question = 'port', asked = rules) {
  return rankTurns({ text: question, date: namedDate(question, NOW) }, hits, asked).map(({ hit, score }) => ({
    turn: hit.turnId,
    node: hit.nodeId,
    worth: score * FULL,
  }));
}

const order = (hits: readonly Hit[], question?: string): string[] => ranked(hits, question).map(({ turn }) => turn);

test('full text is divided by its best and adds to the cosine', () => {
  const [a, b] = [turnHit('a'), turnHit('b')];
  const hits = getHits({
    raw: [
      [a, 8],
      [b, 4],
    ],
    meaning: [[b, 0.5]],
  });
  expect(ranked(hits)).toEqual([
    { turn: 'b', node: 'n', worth: expect.closeTo(0.5 + weights.meaning * 0.5) },
    { turn: 'a', node: 'n', worth: expect.closeTo(1) },
  ]);
});

test('a neighbor of a good turn gets a share of its score', () => {
  const [a, b, c] = [turnHit('a', { place: 1 }), turnHit('b', { place: 2 }), turnHit('c', { place: 9 })];
  const hits = getHits({
    raw: [
      [a, 10],
      [c, 1],
      [b, 1],
    ],
  });
  expect(order(hits)).toEqual(['a', 'b', 'c']);
  expect(ranked(hits)[1]?.worth).toBeCloseTo(0.1 + weights.before);
});

test('a window counts for the turn it ends with and for the one in its middle', () => {
  const a = turnHit('a', { place: 1 });
  const d = turnHit('d', { place: 4 });
  const found = ranked(
    getHits({
      raw: [[a, 1]],
      window: [
        [d, 6],
        [a, 3],
      ],
    }),
  );
  const getWorth = (name: string) => found.find(({ turn }) => turn === name)?.worth;
  expect(getWorth('a')).toBeCloseTo(weights.raw + weights.window * 0.75);
  expect(getWorth('d')).toBeCloseTo(weights.window);
});

test('the date that a question names and the time that it asks for raise the turns that have them', () => {
  const old = turnHit('old', { atMs: Date.UTC(2022, 1, 1) });
  const may = turnHit('may', { atMs: Date.UTC(2023, 4, 8), tellsTime: true });
  const hits = getHits({
    raw: [
      [old, 2],
      [may, 1],
    ],
  });
  expect(order(hits)).toEqual(['old', 'may']);
  expect(order(hits, 'the port in May 2023')).toEqual(['may', 'old']);
  expect(order(hits, 'the port we chose yesterday')).toEqual(['may', 'old']);
  expect(order(hits, 'when did it move?')).toEqual(['may', 'old']);
});

test('facts raise the turns that they rest on', () => {
  const hits = getHits({
    raw: [[turnHit('a'), 1]],
    fact: [
      [turnHit('a'), 3],
      [turnHit('z'), 3],
    ],
  });
  expect(ranked(hits)).toEqual([
    { turn: 'a', node: 'n', worth: expect.closeTo(1 + weights.fact) },
    { turn: 'z', node: 'n', worth: expect.closeTo(weights.fact) },
  ]);
});

test('the trigger of a node raises its turns where triggers count', () => {
  const [a, b] = [turnHit('a'), turnHit('b', { nodeId: 'm' })];
  const hits = [
    ...getHits({
      raw: [
        [a, 2],
        [b, 2],
      ],
    }),
    nodeHit('m', { trigger: { rank: 1, score: 7 } }),
  ];
  expect(order(hits)).toEqual(['a', 'b']);
  const triggered = { ...rules, weights: { ...weights, trigger: 0.5 } };
  expect(ranked(hits, 'port', triggered).map(({ turn }) => turn)).toEqual(['b', 'a']);
});

test('a turn that a full vector lane left out counts for a little less than its last hit', () => {
  const hits = getHits({ raw: [[turnHit('a'), 1]], meaning: [[turnHit('b'), 0.5]] });
  const [first] = ranked(hits, 'port', { ...rules, limit: 1 });
  expect(first?.worth).toBeCloseTo(1 + weights.meaning * 0.4);
});

test('nothing found is nothing ranked; no score is below zero or not a number', () => {
  expect(ranked([])).toEqual([]);
  expect(ranked(getHits({ meaning: [[turnHit('a'), 0]] })).map(({ worth }) => worth)).toEqual([0]);
});

test('reciprocal ranks: first in every lane is 1, and lanes add up', () => {
  const hits = getHits({
    raw: [
      [turnHit('a'), 9],
      [turnHit('b'), 1],
    ],
    meaning: [[turnHit('a'), 0.9]],
  });
  const [first, second] = rankTurns({ text: 'port', date: null }, hits, { ...rules, mode: 'rrf' });
  expect([first?.hit.turnId, first?.score]).toEqual(['a', 1]);
  expect(second?.score).toBeCloseTo(61 / 62 / 2);
});

test('as CoMeT: summary against trigger, raw turns beside them, and the greatest cosine', () => {
  const lanes = { summary: { rank: 1, score: 0.5 }, trigger: { rank: 2, score: 3 } };
  const hits = [...getHits({ raw: [[turnHit('a'), 9]], meaning: [[turnHit('a'), 0.9]] }), nodeHit('n', lanes)];
  const [first] = rankTurns({ text: 'port', date: null }, hits, { ...rules, mode: 'comet' });
  const ranks = (0.5 / 6 + 0.5 / 7 + 0.2 / 6) / (1.2 / 6);
  expect(first?.score).toBeCloseTo(0.6 * ranks + 0.4 * 0.9);
});

test('lanes without a weight are not asked', () => {
  expect(lanesOfTurns(rules)).toEqual(['raw', 'window', 'meaning', 'fact', 'factMeaning']);
  expect(lanesOfTurns({ ...rules, weights: { ...weights, entity: 1, trigger: 1, fact: 0 } })).toEqual([
    ...['raw', 'window', 'entity', 'meaning', 'factMeaning', 'trigger'],
  ]);
  expect(lanesOfTurns({ ...rules, mode: 'comet' })).toContain('trigger');
});

test('questions for a time are known by how they ask', () => {
  const asking = ['When did we move?', 'how long ago was that', 'Which month was it?', 'Do you know when is the cut?'];
  expect(asking.filter(asksWhen)).toEqual(asking);
  expect(['Which port?', 'Tell me whenever you like'].filter(asksWhen)).toEqual([]);
});

test('texts tell a time by a date or by one reckoned from today', () => {
  const telling = ['we met yesterday', 'back in March', 'took 3 weeks', 'on Friday'];
  expect(telling.filter(tellsTime)).toEqual(telling);
  expect(['the lasting fix', 'port 5433'].filter(tellsTime)).toEqual([]);
});
