import type { RankedNode } from './node-ranking.ts';

/**
 * Nodes in the order of `worth`, given in their order; ties stay as they were. The scores they had are handed out anew in
 * that order: what is a good score does not depend on who ordered them.
 */
export function reranked(nodes: readonly RankedNode[], worth: readonly number[]): RankedNode[] {
  const worthAt = (at: number): number => worth[at] ?? Number.NEGATIVE_INFINITY;
  const scores = nodes.map(({ score }) => score).toSorted((one, other) => other - one);
  return [...nodes.keys()]
    .sort((one, other) => (worthAt(one) === worthAt(other) ? one - other : worthAt(other) - worthAt(one)))
    .map((from, at) => ({ ...(nodes[from] as RankedNode), score: scores[at] as number }));
}

const TEXT_CHARS = 2_000;

/** What a reranker is shown of a node: its summary, and of its turns what was found first. */
export function rerankedText(
  summary: string,
  { turns }: RankedNode,
  said: ReadonlyMap<string, { readonly text: string }>,
): string {
  const found = turns.flatMap((turn) => said.get(turn)?.text ?? []);
  return [summary, ...found].join('\n').slice(0, TEXT_CHARS);
}
