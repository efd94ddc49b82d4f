import { expect, test } from 'vitest';
import { Config } from '../../../../common/config.ts';
import type { Boosts } from '../../../../memory/recall/boosts.ts';
import { type NodeFacts, type NodeRules, rankNodes } from '../../../../memory/recall/node-ranking.ts';
import { namedDate } from '../../../../memory/search/dates.ts';
import { rankTurns } from '../../../../memory/search/ranking.ts';
import type { Hit } from '../../../../memory/search/search-index.ts';
import { getHits, nodeHit, turnHit } from '../../../helpers/lane-hits.ts';

const { weights, rrfK, comet } = Config.parse({}).recall;
const NO_BOOSTS: Boosts = { recency: 0, temporal: 0, proof: 0, trust: 0, project: 0 };
const DAY_MS = 86_400_000;
const plain: NodeFacts = { links: [], origin: 'user', project: 'p', atMs: 0, recalled: 0 };

function ranked(
  hits: readonly Hit[],
  facts: Record<string, Partial<NodeFacts>>,
  boosts: Partial<Boosts> = {},
  question = '',
) {
  const turns = rankTurns({ text: 'port', date: null }, hits, { mode: 'score', weights, rrfK, comet, limit: 200 });
  const rules: NodeRules = {
    boosts: { ...NO_BOOSTS, ...boosts },
    project: 'p',
    nowMs: 100 * DAY_MS,
    date: namedDate(question, 100 * DAY_MS),
    getFacts: (id) => (facts[id] === undefined ? null : { ...plain, ...facts[id] }),
    keeps: () => true,
    limit: 100,
  };
  return rankNodes(turns, hits, rules);
}

const getTurn = (nodeId: string) => turnHit(`t-${nodeId}`, { nodeId });
const getNode = (nodeId: string) => nodeHit(nodeId, {});
const even = getHits({
  raw: [
    [getTurn('a'), 1],
    [getTurn('b'), 1],
  ],
});
/** Of the score of the best. */
const getShares = (nodes: readonly { nodeId: string; score: number }[]) =>
  nodes.map(({ nodeId, score }) => [nodeId, score / (nodes[0]?.score ?? 0)]);
const ids = (nodes: readonly { nodeId: string }[]): string[] => nodes.map(({ nodeId }) => nodeId);

test('a node counts by its best turn and by its own lanes; unknown nodes are left out', () => {
  const hits = getHits({
    raw: [
      [getTurn('a'), 4],
      [getTurn('gone'), 3],
    ],
    fts: [[getNode('b'), 2]],
  });
  const nodes = ranked(hits, { a: {}, b: {} });
  expect(getShares(nodes)).toEqual([
    ['a', 1],
    ['b', 0.1],
  ]);
  expect(nodes[0]?.turns).toEqual(['t-a']);
});

test('links carry half a score over one hop and a quarter over two', () => {
  const hits = getHits({ raw: [[getTurn('a'), 1]] });
  const nodes = ranked(hits, { a: { links: ['b'] }, b: { links: ['c', 'lost'] }, c: { links: ['a'] } });
  expect(getShares(nodes)).toEqual([
    ['a', 1],
    ['b', 0.5],
    ['c', 0.25],
  ]);
  expect(nodes.map(({ linkedFrom }) => linkedFrom)).toEqual([null, 'a', 'a']);
});

test('a node whose turns were not found is worth what its own lanes say, however far the best turn is', () => {
  const own = { fts: [[getNode('b'), 7]], summary: [[getNode('b'), 0.9]] } as const;
  const nodes = ranked(getHits({ ...own, meaning: [[getTurn('gone'), 0.1]] }), { b: {} });
  expect(nodes).toMatchObject([{ nodeId: 'b', score: expect.closeTo(0.97) }]);
});

test('a score is 1 where every lane has it first and it is as like as can be, and low where the best is far', () => {
  const [turn, node] = [getTurn('a'), getNode('a')];
  const all = { raw: [[turn, 7]], window: [[turn, 7]], fts: [[node, 7]] } as const;
  const near = ranked(getHits({ ...all, meaning: [[turn, 1]], summary: [[node, 1]] }), { a: {} });
  const far = ranked(getHits({ meaning: [[turn, 0.3]], summary: [[node, 0.3]] }), { a: {} });
  expect(near[0]?.score).toBeGreaterThan(0.8);
  expect(near[0]?.score).toBeLessThanOrEqual(1);
  expect(far[0]?.score).toBeLessThan(0.2);
});

test.each<[string, Partial<Boosts>, Partial<NodeFacts>]>([
  ['newness', { recency: 0.2 }, { atMs: 99 * DAY_MS }],
  ['earlier recalls', { proof: 0.2 }, { recalled: 4 }],
  ['the same project', { project: 0.2 }, { project: 'p' }],
])('%s raises a score, and weighs nothing where its boost is 0', (_, boost, facts) => {
  const others = { project: 'q' };
  expect(ids(ranked(even, { a: others, b: { ...others, ...facts } }, boost))).toEqual(['b', 'a']);
  expect(ids(ranked(even, { a: others, b: { ...others, ...facts } }))).toEqual(['a', 'b']);
});

test('trust raises what the user said above what came from outside', () => {
  expect(ids(ranked(even, { a: { origin: 'external' }, b: {} }, { trust: 0.1 }))).toEqual(['b', 'a']);
});

test('equal scores are ordered by age, then by their turns, with any ids', () => {
  const later = { atMs: DAY_MS };
  expect(ids(ranked(even, { a: later, b: {} }))).toEqual(['b', 'a']);
  const named = (a: string, b: string): Hit[] =>
    getHits({
      raw: [
        [turnHit(a, { nodeId: 'a' }), 1],
        [turnHit(b, { nodeId: 'b' }), 1],
      ],
    });
  expect(ids(ranked(named('t-1', 't-2'), { a: {}, b: {} }))).toEqual(['a', 'b']);
  expect(ids(ranked(named('t-2', 't-1'), { a: {}, b: {} }))).toEqual(['b', 'a']);
});

test('of even nodes the more trusted comes first', () => {
  expect(ids(ranked(even, { a: { origin: 'tool' }, b: { origin: 'user' } }))).toEqual(['b', 'a']);
  expect(ids(ranked(even, { a: { origin: 'external' }, b: { origin: 'assistant' } }))).toEqual(['b', 'a']);
});

test('a memory of the date that the query names is raised where that is asked for', () => {
  const facts = { a: { atMs: Date.UTC(2026, 1, 3) }, b: { atMs: Date.UTC(2026, 4, 3) } };
  expect(ids(ranked(even, facts, {}, 'what was it in may 2026'))).toEqual(['a', 'b']);
  expect(ids(ranked(even, facts, { temporal: 0.2 }, 'what was it in may 2026'))).toEqual(['b', 'a']);
  expect(ids(ranked(even, facts, { temporal: 0.2 }, 'what was it'))).toEqual(['a', 'b']);
});
