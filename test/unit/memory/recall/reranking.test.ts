import { expect, test, vi } from 'vitest';
import { silentLog } from '../../../../common/log.ts';
import type { RankedNode } from '../../../../memory/recall/node-ranking.ts';
import {
  createReranking,
  type Reranker,
  type RerankRules,
  reranked,
  rerankedText,
} from '../../../../memory/recall/reranking.ts';

const score = vi.fn<Reranker['score']>();
let nowMs = 0;

function getReranking(mode: RerankRules['mode'], answer: Reranker['score'], deadlineMs = 150) {
  score.mockReset().mockImplementation(answer);
  const rules = { mode, timeoutMs: 800, candidates: 40 };
  return createReranking({ reranker: { score }, rules, deadlineMs, now: () => nowMs, log: silentLog });
}

const falling: Reranker['score'] = async (_, texts) => texts.map((__, at) => -at);
const broken: Reranker['score'] = async () => {
  throw new Error('down');
};
const hanging: Reranker['score'] = (_, __, signal) =>
  new Promise((___, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));

test.each<[RerankRules['mode'], boolean, number]>([
  ['off', false, 0],
  ['off', true, 0],
  ['search', false, 40],
  ['search', true, 0],
  ['always', false, 40],
  ['always', true, 40],
])('with mode %s, for a prompt: %s, so many memories are put in order: %i', async (mode, gated, candidates) => {
  const reranking = getReranking(mode, falling);
  expect(reranking.candidates(gated)).toBe(candidates);
  expect(await reranking.worth('q', ['a', 'b'], gated)).toEqual(candidates === 0 ? null : [-0, -1]);
  expect(score).toHaveBeenCalledTimes(candidates === 0 ? 0 : 1);
});

test('one text alone is not asked about', async () => {
  expect(await getReranking('always', falling).worth('q', ['a'], false)).toBeNull();
  expect(score).not.toHaveBeenCalled();
});

test('one that hangs is left before the recall for a prompt is too late', async () => {
  const signals = vi.spyOn(AbortSignal, 'timeout');
  expect(await getReranking('always', hanging, 50).worth('q', ['a', 'b'], true)).toBeNull();
  expect(signals).toHaveBeenLastCalledWith(30);
  expect(await getReranking('always', falling).worth('q', ['a', 'b'], false)).toEqual([-0, -1]);
  expect(signals).toHaveBeenLastCalledWith(800);
  signals.mockRestore();
});

test('one that failed three times in a row is left alone for half a minute', async () => {
  const reranking = getReranking('search', broken);
  for (let nth = 0; nth < 5; nth += 1) expect(await reranking.worth('q', ['a', 'b'], false)).toBeNull();
  expect(score).toHaveBeenCalledTimes(3);
  nowMs += 30_000;
  score.mockImplementation(falling);
  expect(await reranking.worth('q', ['a', 'b'], false)).toEqual([-0, -1]);
});

const node = (nodeId: string, score: number): RankedNode => ({
  nodeId,
  score,
  lanes: {},
  similarity: 0,
  turns: ['t-2', 't-1', 'gone'],
  linkedFrom: null,
});
const three = [node('a', 0.9), node('b', 0.5), node('c', 0.1)];
const shown = (nodes: readonly RankedNode[]) => nodes.map(({ nodeId, score }) => [nodeId, score]);

test('the best come first, with the scores of those who stood there; ties stay', () => {
  expect(shown(reranked(three, [0, 5, 2]))).toEqual([
    ['b', 0.9],
    ['c', 0.5],
    ['a', 0.1],
  ]);
  expect(reranked(three, [1, 1, 1])).toEqual(three);
});

test('results without a score follow in their order', () => {
  const none = Number.NEGATIVE_INFINITY;
  expect(reranked(three, [none, none, -4]).map(({ nodeId }) => nodeId)).toEqual(['c', 'a', 'b']);
  expect(reranked(three, [1]).map(({ nodeId }) => nodeId)).toEqual(['a', 'b', 'c']);
});

test('a node is read by its summary and the turns that were found, cut to what a reranker takes', () => {
  const said = new Map([
    ['t-1', { text: 'first said' }],
    ['t-2', { text: 'then said' }],
  ]);
  expect(rerankedText('what it is', three[0] as RankedNode, said)).toBe('what it is\nthen said\nfirst said');
  expect(rerankedText('x'.repeat(5_000), three[0] as RankedNode, said)).toHaveLength(2_000);
});
