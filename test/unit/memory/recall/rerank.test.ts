import { expect, test } from 'vitest';
import type { RankedNode } from '../../../../memory/recall/node-ranking.ts';
import { reranked, rerankedText } from '../../../../memory/recall/rerank.ts';

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

test('what has no worth stands behind, in its order', () => {
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
