import { MOST_LINKS } from '../compaction/linker.ts';
import { isGroup, type MemoryNode } from '../model/node.ts';
import { byAge, isSettled, isUsers, type MergeRule, type NodePair, sortPairs } from './choose-merges.ts';
import { groupKey } from './merge-nodes.ts';

type Nodes = ReadonlyMap<string, MemoryNode>;
type Rule = ConsolidationRule & { readonly sparesDrafts: boolean };

export interface Group {
  readonly members: readonly string[];
  /** Share of near pairs among all pairs; for a join, the lowest share of a new member. */
  readonly density: number;
}

export interface Join extends Group {
  /** An existing group. */
  readonly parent: string;
}

/** Clusters of nodes without a parent. @param pairs  strong enough for a group */
export function chooseGroups(nodes: Nodes, pairs: readonly NodePair[], rule: Rule): readonly Group[] {
  const near = sortPairs(pairs).filter(({ left, right }) => {
    const [one, other] = [nodes.get(left), nodes.get(right)];
    return isFree(one, rule) && isFree(other, rule) && groupKey(one) === groupKey(other);
  });
  return findClusters(near, rule.cluster).map((members) => {
    const own = new Set(members);
    const inside = near.filter(({ left, right }) => own.has(left) && own.has(right)).length;
    return { members, density: inside / ((members.length * (members.length - 1)) / 2) };
  });
}

/** Adds nodes without a parent to groups with room: each to the group where it is near the largest share of members. */
export function chooseJoins(nodes: Nodes, pairs: readonly NodePair[], rule: Rule): readonly Join[] {
  const membersOf = new Map<string, string[]>();
  for (const { node_id, parent_node_id: parent } of [...nodes.values()].toSorted(byAge)) {
    const group = nodes.get(parent ?? '');
    if (group === undefined || !isGroup(group) || isUsers(group)) continue;
    membersOf.set(group.node_id, [...(membersOf.get(group.node_id) ?? []), node_id]);
  }
  const shares = new Map<string, Map<string, number>>();
  for (const { left, right } of sortPairs(pairs)) {
    for (const [from, to] of [
      [left, right],
      [right, left],
    ] as const) {
      const [node, member] = [nodes.get(from), nodes.get(to)];
      const members = membersOf.get(member?.parent_node_id ?? '');
      if (members === undefined || !isFree(node, rule) || member === undefined) continue;
      if (groupKey(node) !== groupKey(member)) continue;
      const own = shares.get(from) ?? new Map<string, number>();
      own.set(member.parent_node_id as string, (own.get(member.parent_node_id as string) ?? 0) + 1 / members.length);
      shares.set(from, own);
    }
  }
  const joins = new Map<string, Join>();
  for (const id of [...shares.keys()].sort()) {
    const [best] = [...(shares.get(id) as Map<string, number>)].toSorted(
      ([a, one], [b, other]) => other - one || (a < b ? -1 : 1),
    );
    const [parent, share] = best as [string, number];
    const { members, density } = joins.get(parent) ?? { members: membersOf.get(parent) ?? [], density: 1 };
    if (members.length >= rule.cluster.maxSize) continue;
    joins.set(parent, { parent, members: [...members, id], density: Math.min(density, share) });
  }
  return [...joins.values()];
}

/** Strongest pairs first, up to the limit of links per node. */
export function chooseLinks(
  nodes: Nodes,
  pairs: readonly NodePair[],
  rule: Rule,
): ReadonlyMap<string, readonly string[]> {
  const links = new Map<string, readonly string[]>();
  const own = (node: MemoryNode): readonly string[] => links.get(node.node_id) ?? node.links;
  for (const { left, right } of sortPairs(pairs)) {
    const [one, other] = [nodes.get(left), nodes.get(right)];
    if (one === undefined || other === undefined || one.project !== other.project) continue;
    if (![one, other].every((node) => isSettled(node, rule))) continue;
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      if (own(from).length >= rule.links || own(from).includes(to.node_id)) continue;
      links.set(from.node_id, [...own(from), to.node_id]);
    }
  }
  return links;
}

function isFree(node: MemoryNode | undefined, rule: Rule): node is MemoryNode {
  return node !== undefined && node.parent_node_id === null && isSettled(node, rule);
}

export interface ClusterRule {
  readonly minSize: number;
  readonly maxSize: number;
}

/**
 * Union-find from the nearest pair on, skipping pairs that would exceed `maxSize`. Disjoint, and independent of the
 * order of the input.
 *
 * @returns members sorted by id, clusters by their first member
 */
export function findClusters(
  pairs: readonly NodePair[],
  { minSize, maxSize }: ClusterRule,
): readonly (readonly string[])[] {
  const roots = new Map<string, string>();
  const members = new Map<string, readonly string[]>();
  const rootOf = (id: string): string => {
    let root = id;
    for (let up = roots.get(root); up !== undefined && up !== root; up = roots.get(root)) root = up;
    roots.set(id, root);
    return root;
  };
  const own = (root: string): readonly string[] => members.get(root) ?? [root];
  for (const { left, right } of sortPairs(pairs)) {
    const [one, other] = [rootOf(left), rootOf(right)];
    const joined = [...own(one), ...own(other)];
    if (one === other || joined.length > maxSize) continue;
    roots.set(other, one);
    members.set(one, joined);
    members.delete(other);
  }
  const found = [...members.values()].filter(({ length }) => length >= minSize).map((ids) => ids.toSorted());
  return found.sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
}

export interface ConsolidationRule extends Omit<MergeRule, 'sparesDrafts'> {
  readonly links: number;
  readonly cluster: ClusterRule;
  /** Minimum share of near pairs for a group made without a model. */
  readonly density: number;
}

/** Fitted per embedder; see `bench/results/consolidation.md`. */
interface ConsolidationThresholds {
  /** Minimum cosine of a merge. */
  readonly same: number;
  /** See `MergeRule`. */
  readonly words: number;
  /** Minimum link strength within a group. */
  readonly group: number;
}

const SHARED = { limit: 5, links: MOST_LINKS, cluster: { minSize: 2, maxSize: 8 }, density: 0.5 } as const;

/** Without fitted thresholds words decide. */
const UNFITTED: ConsolidationThresholds = { same: 0, words: 0.7, group: 0.4 };
const FITS: Readonly<Record<string, ConsolidationThresholds>> = {
  'static-minilm-128-v1': { same: 0.9, words: 0.4, group: 1.2 },
  'hash-ngram-256-v1': { same: 0.85, words: 0.4, group: 1 },
};

/** @param isScript  written in Hangul, kana or Han, whose vectors have another scale */
export function consolidationThresholds(embedderId: string, isScript = false): ConsolidationThresholds {
  return isScript ? UNFITTED : (FITS[embedderId] ?? UNFITTED);
}

export function consolidationRule(embedderId: string): ConsolidationRule {
  return { ...SHARED, words: consolidationThresholds(embedderId).words };
}
