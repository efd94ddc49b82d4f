import { isDeepStrictEqual } from 'node:util';
import { grouped, tally } from '../../common/map.ts';
import { compareText } from '../../common/text.ts';
import { followRedirects, isGroup, isRedirect, type MemoryNode } from '../model/node.ts';
import type { NodeRewrite } from '../storage/fs/dream-files.ts';
import { contentDigest } from '../storage/index-writer.ts';
import {
  byAge,
  type ConsolidationRule,
  chooseGroups,
  chooseJoins,
  chooseLinks,
  chooseMerges,
  type Group,
  groupNodes,
  isSettled,
  isUsers,
  mergedNodes,
  type NodePair,
} from './merge-nodes.ts';
import type { MergeWriter } from './merge-writer.ts';

const MAX_NODES = 400;

export type NeighborPairs = Readonly<Record<'alike' | 'grouped' | 'linked', readonly NodePair[]>>;

export interface ChangeSetInput {
  readonly nodes: readonly MemoryNode[];
  /** Null for all. */
  readonly project: string | null;
  readonly rule: ConsolidationRule;
  /** Content hashes of nodes that earlier runs processed. */
  readonly seen: Readonly<Record<string, string>>;
  readonly nowMs: number;
  readonly near: (node: MemoryNode) => Promise<NeighborPairs>;
  readonly mergeWriter: MergeWriter;
  readonly newId: () => string;
  readonly signal: AbortSignal;
}

export type ChangeSet = Awaited<ReturnType<typeof buildChangeSet>>;

interface State extends ChangeSetInput {
  readonly at: string;
  readonly before: ReadonlyMap<string, MemoryNode>;
  readonly after: Map<string, MemoryNode>;
  readonly merged: { readonly keeper: string; readonly merged: readonly string[]; readonly summary: string }[];
  readonly groups: { readonly parent: string; readonly members: readonly string[]; readonly summary: string }[];
  /** Nodes left to the next run. */
  readonly later: Set<string>;
}

/** Computes the changes without applying them. */
export async function buildChangeSet(input: ChangeSetInput) {
  const { nodes, rule, seen, nowMs } = input;
  const before = new Map(nodes.map((node) => [node.node_id, node]));
  const at = new Date(nowMs).toISOString();
  const state: State = { ...input, at, before, after: new Map(before), merged: [], groups: [], later: new Set() };
  const tags = normalizeTags(state);
  const pruned = pruneAll(state);

  const isNew = (node: MemoryNode): boolean => isSettled(node, rule) && seen[node.node_id] !== shortDigest(node);
  const waiting = nodes
    .filter((node) => inScope(state, node) && isNew(node))
    .toSorted((one, other) => byAge(other, one));
  const looked = waiting.slice(0, MAX_NODES);
  const pairs = await findPairs(state, looked);
  for (const { node_id } of waiting.slice(MAX_NODES)) state.later.add(node_id);

  await merge(state, pairs.alike);
  for (const join of chooseJoins(scoped(state), pairs.grouped, rule))
    await group(state, join, state.after.get(join.parent));
  for (const each of chooseGroups(scoped(state), pairs.grouped, rule)) await group(state, each);
  const linked = link(state, pairs.linked);
  const closing = pruneAll(state);
  return {
    changes: getChanges(state),
    lookedAt: looked.length,
    merged: state.merged,
    groups: state.groups,
    tags,
    linked,
    pruned: { links: pruned.links + closing.links, nodes: [...pruned.nodes, ...closing.nodes] },
    left: state.later.size,
    seen: seenNow(state, looked),
  };
}

const inScope = ({ project }: State, node: MemoryNode): boolean => project === null || node.project === project;

function scoped(state: State): ReadonlyMap<string, MemoryNode> {
  return new Map([...state.after].filter(([, node]) => inScope(state, node)));
}

const get = ({ after }: State, ids: readonly string[]): MemoryNode[] => ids.flatMap((id) => after.get(id) ?? []);

function putNodes({ after }: State, nodes: readonly MemoryNode[]): void {
  for (const node of nodes) after.set(node.node_id, node);
}

async function findPairs({ signal, near }: State, nodes: readonly MemoryNode[]) {
  const pairs: Record<keyof NeighborPairs, NodePair[]> = { alike: [], grouped: [], linked: [] };
  for (const node of nodes) {
    signal.throwIfAborted();
    const neighbors = await near(node);
    for (const kind of Object.keys(pairs) as (keyof NeighborPairs)[]) pairs[kind].push(...neighbors[kind]);
  }
  return pairs;
}

async function merge(state: State, alike: readonly NodePair[]): Promise<void> {
  const { nodes, rule, signal, mergeWriter, later, at, merged } = state;
  const listTaken = (keeper: string): number =>
    nodes.filter((node) => node.superseded_as === 'merged' && node.superseded_by === keeper).length;
  for (const { keeper, absorbed } of chooseMerges(scoped(state), alike, rule, listTaken)) {
    signal.throwIfAborted();
    const [first, ...others] = get(state, [keeper, ...absorbed]) as [MemoryNode, ...MemoryNode[]];
    const made = await mergeWriter.merge([first, ...others]);
    if (made.kind === 'later') for (const id of [keeper, ...absorbed]) later.add(id);
    if (made.kind !== 'text') continue;
    const losers = others.filter((node) => made.nodes.includes(node));
    putNodes(state, mergedNodes(first, losers, { ...made, at }));
    merged.push({ keeper, merged: losers.map(({ node_id }) => node_id), summary: made.text.summary });
  }
}

async function group(state: State, { members, density }: Group, former?: MemoryNode): Promise<void> {
  const { signal, mergeWriter, later, groups, at } = state;
  signal.throwIfAborted();
  const nodes = get(state, members);
  const made = await mergeWriter.group(nodes, density);
  if (made.kind === 'later') for (const id of members) later.add(id);
  if (made.kind !== 'text') return;
  const parent = former?.node_id ?? freshId(state);
  putNodes(state, groupNodes(nodes, parent, { ...made, at: former?.created_at ?? at }));
  groups.push({ parent, members, summary: made.text.summary });
}

/** @returns how many links were added */
function link(state: State, pairs: readonly NodePair[]): number {
  const links = chooseLinks(scoped(state), pairs, state.rule);
  const added = [...links].reduce((sum, [id, own]) => sum + own.length - (state.after.get(id)?.links.length ?? 0), 0);
  const changed = [...links].flatMap(([id, own]) => get(state, [id]).map((node) => ({ ...node, links: [...own] })));
  putNodes(state, changed);
  return added;
}

function normalizeTags(state: State): { readonly from: string; readonly to: string }[] {
  const { nodes, rule } = state;
  const renames = new Map<string, string>();
  const counting = nodes.filter((node) => inScope(state, node) && !isRedirect(node));
  for (const own of grouped(counting, (node) => node.project).values()) {
    const forms = canonicalTags(own.flatMap((node) => node.topic_tags));
    for (const node of own.filter((node) => isSettled(node, rule) && !isUsers(node))) {
      const topic_tags = canonicalizeTags(node.topic_tags, forms);
      if (topic_tags === node.topic_tags) continue;
      putNodes(state, [{ ...node, topic_tags: [...topic_tags] }]);
      for (const tag of node.topic_tags) if (forms.has(tag)) renames.set(tag, forms.get(tag) as string);
    }
  }
  return [...renames].map(([from, to]) => ({ from, to })).sort((a, b) => (a.from < b.from ? -1 : 1));
}

function pruneAll(state: State) {
  const { after, nowMs } = state;
  const pruning = prune(after, nowMs);
  const removals = pruning.removed.filter((id) => inScope(state, after.get(id) as MemoryNode));
  const changed = pruning.changed.filter((node) => inScope(state, node));
  const lost = changed.reduce((sum, node) => sum + (after.get(node.node_id)?.links.length ?? 0) - node.links.length, 0);
  putNodes(state, changed);
  for (const id of removals) after.delete(id);
  return { links: lost, nodes: removals };
}

function freshId({ newId, after }: State): string {
  let id = newId();
  while (after.has(id)) id = newId();
  return id;
}

function getChanges({ before, after }: State): NodeRewrite[] {
  return [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((id): NodeRewrite[] => {
    const [was, is] = [before.get(id) ?? null, after.get(id) ?? null];
    return was === is || isDeepStrictEqual(was, is) ? [] : [{ before: was, after: is }];
  });
}

/** Nodes that this run changed count as processed too. */
function seenNow({ before, after, later, rule, seen }: State, looked: readonly MemoryNode[]): Record<string, string> {
  const lookedIds = new Set(looked.map(({ node_id }) => node_id));
  const digests: Record<string, string> = {};
  for (const [id, node] of after) {
    if (later.has(id) || !isSettled(node, rule)) continue;
    const [was, known] = [before.get(id), seen[id]];
    if (lookedIds.has(id) || (was !== undefined && known === shortDigest(was))) digests[id] = shortDigest(node);
    else if (known !== undefined) digests[id] = known;
  }
  return digests;
}

export const shortDigest = (node: MemoryNode): string => contentDigest(node).slice(0, 12);

/** Canonical forms of abbreviations and variants. */
const SYNONYMS = new Map(
  (
    'db=database auth=authentication authn=authentication config=configuration settings=configuration ' +
    'setting=configuration doc=documentation dep=dependency deploy=deployment deploys=deployment env=environment ' +
    'perf=performance k8s=kubernetes js=javascript ts=typescript py=python repo=repository test=testing ' +
    'build=building migrate=migration postgresql=postgres pg=postgres bugfix=bug sec=security'
  )
    .split(' ')
    .map((pair) => pair.split('=') as [string, string]),
);
/** Words whose final "s" is not a plural. */
const NO_PLURAL = /(?:ss|us|is|ics|ews|js|os|as|ls|dns|tls|aws|css|https?)$/;

/** Equal for variants of one tag. */
export function tagKey(tag: string): string {
  const words = tag
    .normalize('NFKC')
    .replace(/(?<=\p{Ll})(?=\p{Lu})/gu, '-')
    .split(/[\s_./-]+/);
  return words.flatMap((word) => (word === '' ? [] : keyOfWord(word.toLowerCase()))).join('');
}

function keyOfWord(word: string): string {
  const synonym = SYNONYMS.get(word);
  if (synonym !== undefined) return synonym;
  const one = singular(word);
  return SYNONYMS.get(one) ?? one;
}

function singular(word: string): string {
  if (word.length < 4 || NO_PLURAL.test(word)) return word;
  if (word.length > 4 && word.endsWith('ies')) return `${word.slice(0, -3)}y`;
  if (/(?:ch|sh|x|z|ss)es$/.test(word)) return word.slice(0, -2);
  return word.endsWith('s') ? word.slice(0, -1) : word;
}

/**
 * Maps less used variants to the most used one; ties: the shorter, then the first in order.
 * @param tags  with repetitions
 */
export function canonicalTags(tags: readonly string[]): ReadonlyMap<string, string> {
  const uses = [...tally(tags.filter((tag) => !tag.includes(':')))];
  const worstFirst = uses.toSorted(
    ([one, count], [other, often]) => count - often || other.length - one.length || compareText(other, one),
  );
  const best = new Map(worstFirst.map(([tag]) => [tagKey(tag), tag]));
  const forms = uses.map(([tag]) => [tag, best.get(tagKey(tag)) as string] as const);
  return new Map(forms.filter(([tag, form]) => tag !== form));
}

/** Returns the same list if nothing changes. */
export function canonicalizeTags(tags: readonly string[], forms: ReadonlyMap<string, string>): readonly string[] {
  if (!tags.some((tag) => forms.has(tag))) return tags;
  return [...new Set(tags.map((tag) => forms.get(tag) ?? tag))];
}

/** A conversation may still show the id of a redirect. */
const REDIRECT_AGE_MS = 30 * 86_400_000;
const MIN_MEMBERS = 2;

/**
 * Removes broken, circular and duplicate links, resolves links to redirects, and removes groups of fewer than two
 * members and old redirects of drafts. Every turn stays covered. `removed` are ids.
 */
export function prune(nodes: ReadonlyMap<string, MemoryNode>, nowMs: number) {
  const all = [...nodes.values()];
  const current = all.filter((node) => !isRedirect(node));
  const membersOf = tally(current.map(({ parent_node_id }) => parent_node_id));
  const ids = new Set(current.flatMap(({ turns }) => turns));
  const pointedTo = new Set(all.filter(isRedirect).map(({ superseded_by }) => superseded_by));
  /** Of drafts only: a merged node keeps its text. */
  const isOldRedirect = (node: MemoryNode): boolean =>
    isRedirect(node) &&
    node.superseded_as !== 'merged' &&
    node.valid_to !== null &&
    nowMs - Date.parse(node.valid_to) > REDIRECT_AGE_MS &&
    nodes.has(node.superseded_by as string) &&
    node.turns.every((turnId) => ids.has(turnId));
  const isOver = (node: MemoryNode): boolean =>
    isGroup(node) ? (membersOf.get(node.node_id) ?? 0) < MIN_MEMBERS : isOldRedirect(node);
  const isKept = (node: MemoryNode): boolean => isRedirect(node) && pointedTo.has(node.node_id);
  const removed = new Set(all.filter((node) => isOver(node) && !isKept(node)).map(({ node_id }) => node_id));
  const target = (id: string): string | null => {
    const node = followRedirects(id, nodes);
    return node === undefined || removed.has(node.node_id) ? null : node.node_id;
  };
  const changed: MemoryNode[] = [];
  for (const node of current) {
    if (removed.has(node.node_id)) continue;
    const links = [...new Set(node.links.flatMap((id) => target(id) ?? []))].filter((id) => id !== node.node_id);
    const parent = node.parent_node_id === null ? null : target(node.parent_node_id);
    const isSame = links.length === node.links.length && links.every((id, at) => id === node.links[at]);
    if (!isSame || parent !== node.parent_node_id) changed.push({ ...node, links, parent_node_id: parent });
  }
  return { changed, removed: [...removed].sort() };
}
