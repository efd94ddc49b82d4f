import { grouped, tally } from '../../common/map.ts';
import { compareText } from '../../common/text.ts';
import { isCleanOrigin, lowestOrigin } from '../../common/turn.ts';
import { MOST_LINKS } from '../compaction/linker.ts';
import { type Author, type Fact, isFromText, isGroup, isRedirect, type MemoryNode, redirectTo } from '../model/node.ts';
import { isNearDuplicate, isSameMatter } from '../text/paraphrase.ts';
import { isClosed } from '../text/validity.ts';

const TAGS = 8;
/** Nodes that one keeper absorbs, over all runs. */
const MOST_ABSORBED = 5;
const GROUP_SIZES = { minSize: 2, maxSize: 8 };
const RANK = { HIGH: 0, MED: 1, LOW: 2 } as const;

export interface MergedContent {
  readonly text: MergeText;
  readonly author: Author;
  /** ISO. */
  readonly at: string;
}

/** Returns the keeper with all turns and facts, then the others as redirects that keep their text. */
export function mergedNodes(keeper: MemoryNode, losers: readonly MemoryNode[], making: MergedContent): MemoryNode[] {
  const { text, author, at } = making;
  const all = [keeper, ...losers];
  const fromOldest = all.toSorted((a, b) => compareText(a.valid_from, b.valid_from) || byAge(a, b));
  const turns = distinct(fromOldest.flatMap((node) => node.turns));
  const ids = new Set(all.map(({ node_id }) => node_id));
  const whole: MemoryNode = {
    ...keeper,
    summary: text.summary,
    trigger: text.trigger,
    // Describes the former text; rewritten on request.
    detailed_summary: null,
    topic_tags: distinct(all.flatMap((node) => node.topic_tags)).slice(0, Math.max(TAGS, keeper.topic_tags.length)),
    importance: all.map(({ importance }) => importance).sort((a, b) => RANK[a] - RANK[b])[0] ?? keeper.importance,
    ...mergedShape(all),
    facts: distinctFacts(all.flatMap((node) => node.facts)),
    links: distinct(all.flatMap((node) => node.links)).filter((id) => !ids.has(id)),
    source_links: distinct(all.flatMap((node) => node.source_links)),
    capsule: keeper.capsule ?? losers.find(({ capsule }) => capsule !== null)?.capsule ?? null,
    origin: lowestOrigin(all.map(({ origin }) => origin)),
    valid_from: all.map(({ valid_from }) => valid_from).sort()[0] ?? keeper.valid_from,
    turns,
    author,
    status: 'current',
  };
  const pointers = losers.map((loser): MemoryNode => {
    return { ...redirectTo(loser, keeper.node_id, at), superseded_as: 'merged', parent_node_id: null };
  });
  return [whole, ...pointers];
}

function mergedShape(nodes: readonly MemoryNode[]): Pick<MemoryNode, 'decisions' | 'open' | 'values'> {
  const byText = <T extends { text: string }>(items: readonly T[]): T[] => [
    ...new Map(items.map((item) => [item.text, item])).values(),
  ];
  const decisions = byText(nodes.flatMap((node) => node.decisions ?? []));
  const open = byText(nodes.flatMap((node) => node.open ?? []));
  const values = distinct(nodes.flatMap((node) => node.values ?? []));
  return {
    ...(decisions.length === 0 ? {} : { decisions }),
    ...(open.length === 0 ? {} : { open }),
    ...(values.length === 0 ? {} : { values }),
  };
}

/** Returns a group node without turns, then its members. It has their lowest origin and is recalled by search only. */
export function groupNodes(members: readonly MemoryNode[], id: string, making: MergedContent): MemoryNode[] {
  const [oldest, ...younger] = members.toSorted(byAge);
  if (oldest === undefined) return [];
  const all = [oldest, ...younger];
  const counts = tally(all.flatMap((node) => distinct(node.topic_tags)));
  const frequent = [...counts].filter(([tag, count]) => !tag.includes(':') && 2 * count >= all.length);
  const common = frequent.sort(([, a], [, b]) => b - a);
  const parent: MemoryNode = {
    ...oldest,
    node_id: id,
    depth_level: 0,
    recall_mode: 'active',
    topic_tags: common.slice(0, TAGS).map(([tag]) => tag),
    importance: all.every(({ importance }) => importance === 'LOW') ? 'LOW' : 'MED',
    summary: making.text.summary,
    detailed_summary: null,
    trigger: making.text.trigger,
    links: all.map(({ node_id }) => node_id),
    source_links: [],
    capsule: null,
    origin: lowestOrigin(all.map(({ origin }) => origin)),
    valid_from: all.map(({ valid_from }) => valid_from).sort()[0] ?? oldest.valid_from,
    compaction_reason: 'forced',
    created_at: making.at,
    turns: [],
    kind: 'group',
    author: making.author,
    status: 'current',
    facts: [],
  };
  const { pinned_from: _, ...plain } = parent;
  return [plain, ...all.map((member) => ({ ...member, parent_node_id: id }))];
}

/** Groups do not mix trusted and untrusted nodes. */
function groupKey({ project, origin }: MemoryNode): string {
  return `${isCleanOrigin(origin) ? 'clean' : 'other'}\n${project}`;
}

function distinctFacts(facts: readonly Fact[]): Fact[] {
  const same = grouped(facts, ({ concept, value, polarity, valid_to = null, superseded_by = null }) =>
    JSON.stringify([concept, value, polarity, valid_to, superseded_by]),
  );
  return [...same.values()].map((own) => {
    const [first] = own as [Fact];
    return own.length === 1 ? first : { ...first, evidence: distinct(own.flatMap(({ evidence }) => evidence)) };
  });
}

const distinct = (items: readonly string[]): string[] => [...new Set(items)];

export type MergeText = Pick<MemoryNode, 'summary' | 'trigger'>;

export interface ConsolidationRule {
  /** Minimum share of the shorter text's words that the other contains. */
  readonly words: number;
  /** The same for a merge made without a model. */
  readonly repeated: number;
  /** Whether a model is going to replace this draft. */
  readonly isWaiting: (node: MemoryNode) => boolean;
}

export type MergeRule = Pick<ConsolidationRule, 'words' | 'isWaiting'>;

/** A current, unmerged turn node that consolidation may change. */
export function isSettled(node: MemoryNode, { isWaiting }: Pick<MergeRule, 'isWaiting'>): boolean {
  return (
    !isRedirect(node) &&
    node.superseded_by === null &&
    node.valid_to === null &&
    node.turns.length > 0 &&
    node.depth_level === 1 &&
    !isFromText(node) &&
    node.kind !== 'tool' &&
    !isWaiting(node)
  );
}

/** The user's own and pinned nodes stay unchanged. */
export const isUsers = (node: MemoryNode): boolean => node.author.by === 'user' || node.pinned_from !== undefined;

/** Requires the same origin, so that a merge changes no node's trust; absorbs a HIGH node only if both say the same. */
export function mayMerge(keeper: MemoryNode, younger: MemoryNode, rule: MergeRule): boolean {
  return (
    [keeper, younger].every((node) => isSettled(node, rule) && !isUsers(node)) &&
    (younger.importance !== 'HIGH' || isNearDuplicate(saying(keeper), saying(younger))) &&
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
 * @param pairs  similar enough to merge
 * @param absorbedBefore  number of nodes that a keeper absorbed in earlier runs
 */
export function chooseMerges(
  nodes: ReadonlyMap<string, MemoryNode>,
  pairs: readonly NodePair[],
  rule: MergeRule,
  absorbedBefore: (keeper: string) => number = () => 0,
) {
  const removedIds = new Set<string>();
  const merges: { readonly keeper: string; readonly absorbed: readonly string[] }[] = [];
  const near = grouped(bothWays(pairs), ([from]) => from);
  for (const keeper of [...nodes.values()].toSorted(byAge)) {
    if (removedIds.has(keeper.node_id)) continue;
    const fitting = (near.get(keeper.node_id) ?? [])
      .flatMap(([, to]) => (removedIds.has(to) ? [] : (nodes.get(to) ?? [])))
      .filter((younger) => byAge(keeper, younger) < 0 && mayMerge(keeper, younger, rule))
      .map(({ node_id }) => node_id);
    const absorbed = fitting.slice(0, Math.max(0, MOST_ABSORBED - absorbedBefore(keeper.node_id)));
    for (const id of absorbed) removedIds.add(id);
    if (absorbed.length > 0) merges.push({ keeper: keeper.node_id, absorbed });
  }
  return merges;
}

/** Oldest first, ties by id. */
export function byAge(one: MemoryNode, other: MemoryNode): number {
  return compareText(one.created_at, other.created_at) || compareText(one.node_id, other.node_id);
}

const saying = ({ summary, facts }: MemoryNode): string => [summary, ...facts.map(({ value }) => value)].join('\n');

/** Different values of one concept, or one value with both polarities, are a change, not a repetition. */
export function contradicts(one: MemoryNode, other: MemoryNode): boolean {
  const isDenied = ({ value, polarity }: Fact, by: Fact): boolean =>
    polarity !== by.polarity || (value !== by.value && !isSameMatter(value, by.value, 0));
  return one.facts.some((fact) => other.facts.some((each) => each.concept === fact.concept && isDenied(each, fact)));
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
    const bestSimilarity = best.get(key)?.similarity ?? Number.NEGATIVE_INFINITY;
    if (similarity > bestSimilarity) best.set(key, { left: first, right: second, similarity });
  }
  return [...best]
    .sort(([a, one], [b, other]) => other.similarity - one.similarity || (a < b ? -1 : 1))
    .map(([, pair]) => pair);
}

/** Each pair in both directions, as `sortPairs`. */
function bothWays(pairs: readonly NodePair[]): (readonly [from: string, to: string])[] {
  return sortPairs(pairs).flatMap(({ left, right }) => [[left, right] as const, [right, left] as const]);
}

type Nodes = ReadonlyMap<string, MemoryNode>;

export interface Group {
  readonly members: readonly string[];
  /** Share of near pairs among all pairs; for a join, the lowest share of a new member. */
  readonly density: number;
}

/** Clusters of nodes without a parent. @param pairs  strong enough for a group */
export function chooseGroups(nodes: Nodes, pairs: readonly NodePair[], rule: ConsolidationRule): readonly Group[] {
  const near = sortPairs(pairs).filter(({ left, right }) => {
    const [one, other] = [nodes.get(left), nodes.get(right)];
    return isFree(one, rule) && isFree(other, rule) && groupKey(one) === groupKey(other);
  });
  return findClusters(near, GROUP_SIZES).map((members) => {
    const own = new Set(members);
    const inside = near.filter(({ left, right }) => own.has(left) && own.has(right)).length;
    return { members, density: inside / ((members.length * (members.length - 1)) / 2) };
  });
}

/** Adds nodes without a parent to groups with room: each to the group where it is near the largest share of members. */
export function chooseJoins(nodes: Nodes, pairs: readonly NodePair[], rule: ConsolidationRule) {
  const membersOf = new Map<string, string[]>();
  for (const { node_id, parent_node_id: parent } of [...nodes.values()].toSorted(byAge)) {
    const group = nodes.get(parent ?? '');
    if (group === undefined || !isGroup(group) || isUsers(group)) continue;
    membersOf.set(group.node_id, [...(membersOf.get(group.node_id) ?? []), node_id]);
  }
  const shares = new Map<string, Map<string, number>>();
  for (const [from, to] of bothWays(pairs)) {
    const [node, member] = [nodes.get(from), nodes.get(to)];
    const parent = member?.parent_node_id ?? '';
    const members = membersOf.get(parent);
    if (members === undefined || !isFree(node, rule) || member === undefined) continue;
    if (groupKey(node) !== groupKey(member)) continue;
    const own = shares.get(from) ?? new Map<string, number>();
    shares.set(from, own.set(parent, (own.get(parent) ?? 0) + 1 / members.length));
  }
  const joins = new Map<string, Group & { readonly parent: string }>();
  for (const [id, own] of [...shares].sort(([a], [b]) => compareText(a, b))) {
    const [best] = [...own].toSorted(([a, one], [b, other]) => other - one || compareText(a, b));
    const [parent, share] = best as [string, number];
    const { members, density } = joins.get(parent) ?? { members: membersOf.get(parent) ?? [], density: 1 };
    if (members.length >= GROUP_SIZES.maxSize) continue;
    joins.set(parent, { parent, members: [...members, id], density: Math.min(density, share) });
  }
  return [...joins.values()];
}

/** Strongest pairs first, up to the limit of links per node. */
export function chooseLinks(nodes: Nodes, pairs: readonly NodePair[], rule: ConsolidationRule) {
  const links = new Map<string, readonly string[]>();
  const own = (node: MemoryNode): readonly string[] => links.get(node.node_id) ?? node.links;
  for (const [from, to] of bothWays(pairs)) {
    const [node, other] = [nodes.get(from), nodes.get(to)];
    if (node === undefined || other === undefined || node.project !== other.project) continue;
    if (!isSettled(node, rule) || !isSettled(other, rule)) continue;
    if (own(node).length < MOST_LINKS && !own(node).includes(to)) links.set(from, [...own(node), to]);
  }
  return links;
}

function isFree(node: MemoryNode | undefined, rule: ConsolidationRule): node is MemoryNode {
  return node !== undefined && node.parent_node_id === null && isSettled(node, rule);
}

/**
 * Union-find from the nearest pair on, skipping pairs that would exceed `maxSize`. Disjoint, and independent of the
 * order of the input.
 * @returns members sorted by id, clusters by their first member
 */
export function findClusters(pairs: readonly NodePair[], { minSize, maxSize }: typeof GROUP_SIZES) {
  const roots = new Map<string, string>();
  const members = new Map<string, readonly string[]>();
  const getRoot = (id: string): string => {
    let root = id;
    for (let up = roots.get(root); up !== undefined && up !== root; up = roots.get(root)) root = up;
    roots.set(id, root);
    return root;
  };
  const own = (root: string): readonly string[] => members.get(root) ?? [root];
  for (const { left, right } of sortPairs(pairs)) {
    const [one, other] = [getRoot(left), getRoot(right)];
    const joined = [...own(one), ...own(other)];
    if (one === other || joined.length > maxSize) continue;
    roots.set(other, one);
    members.set(one, joined);
    members.delete(other);
  }
  const groups = [...members.values()].filter(({ length }) => length >= minSize).map((ids) => ids.toSorted());
  return groups.sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
}

/** Fitted per embedder; see `bench/results/consolidation.md`. */
interface ConsolidationThresholds extends Pick<ConsolidationRule, 'words' | 'repeated'> {
  /** Minimum cosine of a merge. */
  readonly same: number;
  /** Minimum link strength within a group. */
  readonly group: number;
}

/** Without fitted thresholds words decide. */
const UNFITTED: ConsolidationThresholds = { same: 0, words: 0.7, repeated: 1, group: 0.4 };
const FITS: Readonly<Record<string, ConsolidationThresholds>> = {
  'static-minilm-256-v2': { same: 0.85, words: 0.4, repeated: 0.5, group: 0.9 },
  'hash-ngram-256-v1': { same: 0.85, words: 0.4, repeated: 1, group: 1 },
};

/** @param isScript  written in Hangul, kana or Han, whose vectors have another scale */
export function consolidationThresholds(embedderId: string, isScript = false): ConsolidationThresholds {
  return isScript ? UNFITTED : (FITS[embedderId] ?? UNFITTED);
}
