import type { MemoryNode } from '../model/node.ts';
import { isDraft, isFromText, isRedirect } from '../model/node.ts';
import { isSameMatter } from '../text/paraphrase.ts';
import { isClosed } from '../text/validity.ts';

export interface MergeRule {
  /** Minimum share of the shorter text's words that the other contains. */
  readonly words: number;
  /** Total nodes that one keeper may absorb. */
  readonly limit: number;
  /** Skip drafts that a model is going to replace. */
  readonly sparesDrafts: boolean;
}

export interface Merge {
  /** The oldest node. */
  readonly keeper: string;
  readonly absorbed: readonly string[];
}

/** A current, unmerged turn node that consolidation may change. */
export function isSettled(node: MemoryNode, { sparesDrafts }: Pick<MergeRule, 'sparesDrafts'>): boolean {
  return (
    !isRedirect(node) &&
    node.superseded_by === null &&
    node.valid_to === null &&
    node.turns.length > 0 &&
    node.depth_level === 1 &&
    !isFromText(node) &&
    node.kind !== 'tool' &&
    !(sparesDrafts && isDraft(node))
  );
}

/** The user's own and pinned nodes stay unchanged. */
export function isUsers(node: MemoryNode): boolean {
  return node.author.by === 'user' || node.pinned_from !== undefined;
}

/** Requires the same origin, so that a merge changes no node's trust; never absorbs a HIGH node. */
export function mayMerge(keeper: MemoryNode, younger: MemoryNode, rule: MergeRule): boolean {
  return (
    [keeper, younger].every((node) => isSettled(node, rule) && !isUsers(node)) &&
    younger.importance !== 'HIGH' &&
    keeper.project === younger.project &&
    keeper.origin === younger.origin &&
    keeper.recall_mode === younger.recall_mode &&
    ![...keeper.facts, ...younger.facts].some(isClosed) &&
    !contradicts(keeper, younger) &&
    isSameMatter(saying(keeper), saying(younger), rule.words)
  );
}

/**
 * Older nodes absorb their nearest first; each node is absorbed at most once and a keeper never. Idempotent: no
 * mergeable pair is left.
 *
 * @param pairs  similar enough to merge
 * @param absorbedBefore  number of nodes that a keeper absorbed in earlier runs
 */
export function chooseMerges(
  nodes: ReadonlyMap<string, MemoryNode>,
  pairs: readonly NodePair[],
  rule: MergeRule,
  absorbedBefore: (keeper: string) => number = () => 0,
): readonly Merge[] {
  const gone = new Set<string>();
  const merges: Merge[] = [];
  const near = neighbours(pairs);
  for (const keeper of [...nodes.values()].toSorted(byAge)) {
    if (gone.has(keeper.node_id)) continue;
    const fitting = (near.get(keeper.node_id) ?? []).filter((id) => {
      const younger = nodes.get(id);
      return younger !== undefined && !gone.has(id) && byAge(keeper, younger) < 0 && mayMerge(keeper, younger, rule);
    });
    const absorbed = fitting.slice(0, Math.max(0, rule.limit - absorbedBefore(keeper.node_id)));
    for (const id of absorbed) gone.add(id);
    if (absorbed.length > 0) merges.push({ keeper: keeper.node_id, absorbed });
  }
  return merges;
}

function neighbours(pairs: readonly NodePair[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  const add = (id: string, other: string): void => void found.set(id, [...(found.get(id) ?? []), other]);
  for (const { left, right } of sortPairs(pairs)) {
    add(left, right);
    add(right, left);
  }
  return found;
}

/** Oldest first, ties by id. */
export function byAge(one: MemoryNode, other: MemoryNode): number {
  const [a, b] = [`${one.created_at} ${one.node_id}`, `${other.created_at} ${other.node_id}`];
  return a < b ? -1 : Number(a > b);
}

function saying({ summary, facts }: MemoryNode): string {
  return [summary, ...facts.map(({ value }) => value)].join('\n');
}

/** Different values of one concept, or one value with both polarities, are a change, not a repetition. */
export function contradicts(one: MemoryNode, other: MemoryNode): boolean {
  return one.facts.some((fact) =>
    other.facts.some(
      ({ concept, value, polarity }) =>
        concept === fact.concept &&
        (polarity !== fact.polarity || (value !== fact.value && !isSameMatter(value, fact.value, 0))),
    ),
  );
}

export interface NodePair {
  readonly left: string;
  readonly right: string;
  /** Cosine or link strength, depending on the purpose of the pairs. */
  readonly similarity: number;
}

/** Most similar first, ties by id; each pair once with its highest similarity. */
export function sortPairs(pairs: readonly NodePair[]): readonly NodePair[] {
  const best = new Map<string, NodePair>();
  for (const { left, right, similarity } of pairs) {
    if (left === right) continue;
    const [first, second] = left < right ? [left, right] : [right, left];
    const key = `${first}\n${second}`;
    const known = best.get(key)?.similarity ?? Number.NEGATIVE_INFINITY;
    if (similarity > known) best.set(key, { left: first, right: second, similarity });
  }
  return [...best]
    .sort(([a, one], [b, other]) => other.similarity - one.similarity || (a < b ? -1 : 1))
    .map(([, pair]) => pair);
}
