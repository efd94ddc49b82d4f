import { isDeepStrictEqual } from 'node:util';
import { createMutex } from '../../common/async.ts';
import type { Problem } from '../../common/errors.ts';
import { internNode, isDraft, isFromText, isRedirect, type MemoryNode } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import type { IndexEntry, SearchIndex } from '../search/search-index.ts';
import { isCall } from '../text/actions.ts';
import type { IdSetFile } from './fs/set-files.ts';
import { contentDigest, type Indexer } from './index-writer.ts';
import type { NodeFiles } from './node-files.ts';
import type { NodeRegistry } from './node-registry.ts';

/** Of all nodes; a few may always be. */
const EDITED_SHARE = 0.5;
const FEW_EDITED = 5;

/** Operations that require the store's lock. */
export interface LockedStore {
  /** Files first, then catalogue, then index; `texts` of the turns, where they are at hand. */
  save(nodes: readonly MemoryNode[], texts?: readonly TurnText[]): Promise<void>;
  /** `turnIds` of the turns of which no copy may stay. */
  remove(ids: readonly string[], turnIds?: readonly string[]): Promise<void>;
  /** Makes no node of these turns, now or later; they stay in the journal. Turns with a node are left as they are. */
  dismiss(turnIds: readonly string[]): Promise<void>;
  /** Takes over what the caller has written to the files itself, and the ids it took out of them. */
  adopt(nodes: readonly MemoryNode[], gone: readonly string[]): void;
  /** Takes over what was changed on disk; all of it, or what stands in these files. */
  refresh(files?: readonly string[]): Promise<void>;
}

/** Node files, catalogue and index as one: changed by one at a time, and the files win. */
export interface Store extends Omit<LockedStore, 'adopt' | 'dismiss'> {
  /**
   * Reads the files for the first time, and what was edited while the daemon was stopped. `written` are digests of nodes, by
   * id, that we wrote last ourselves.
   */
  open(written?: ReadonlyMap<string, string>): Promise<void>;
  exclusive<T>(work: (held: LockedStore) => Promise<T>): Promise<T>;
  /** Files and sections that do not validate. */
  problems(): readonly Problem[];
  /** The user took the node of this turn out of its file, or it leaves nothing to remember: no node is made of it. */
  isDismissed(turnId: string): boolean;
}

export type StoreParts = {
  readonly nodeFiles: NodeFiles;
  readonly dismissed: IdSetFile;
  readonly index: SearchIndex;
  readonly catalogue: NodeRegistry;
  readonly indexer: Indexer;
};

export function createStore({ nodeFiles, dismissed, index, catalogue, indexer }: StoreParts): Store {
  const dismissedIds = new Set<string>();
  /** Nodes that were taken out of the files, or broken in them: they may come back changed. */
  const gone = new Map<string, MemoryNode>();
  const agrees = createAgreement(catalogue);
  let problems: readonly Problem[] = [];
  const lock = createMutex();
  const { take, drop } = createMirror(catalogue, indexer);
  const exclusive = <T>(work: (held: LockedStore) => Promise<T>): Promise<T> => lock(() => work(held));

  async function save(nodes: readonly MemoryNode[], texts?: readonly TurnText[]): Promise<void> {
    if (nodes.length === 0) return;
    // Made of parts of turns, which would stay in memory with them.
    const own = nodes.map(internNode);
    await nodeFiles.save(own);
    take(own, texts);
  }

  async function remove(ids: readonly string[], turnIds: readonly string[] = []): Promise<void> {
    await nodeFiles.remove(ids, turnIds);
    drop(ids.flatMap((id) => catalogue.get(id) ?? []));
  }

  async function refresh(files?: readonly string[]): Promise<void> {
    const loaded = await nodeFiles.load(files);
    problems = loaded.problems;
    const onDisk = new Set(loaded.nodes.map((node) => node.node_id));
    const lost = catalogue.every().filter((node) => !onDisk.has(node.node_id));
    const changed = loaded.nodes.filter((node) => !agrees(node));
    for (const node of lost) gone.set(node.node_id, node);
    const orphans = lost.flatMap((node) => catalogue.childrenOf(node.node_id)).filter(isCall);
    catalogue.remove(lost.map((node) => node.node_id));
    const byHand = changed.flatMap((node) => {
      const before = gone.get(node.node_id) ?? catalogue.get(node.node_id);
      const kept = before === undefined || isDeepStrictEqual(before, node) ? node : keptByHand(node, before);
      return kept === node ? [] : [kept];
    });
    take(changed);
    drop(lost);
    if (orphans.length > 0) await remove(orphans.map((node) => node.node_id));
    for (const node of changed) gone.delete(node.node_id);
    await dismiss(lost.filter((node) => !isRedirect(node)).flatMap((node) => node.turns));
    await save(byHand);
  }

  /** The raw turns stay in the journal, but nothing is made of them again. */
  async function dismiss(turnIds: readonly string[]): Promise<void> {
    const fresh = [...new Set(turnIds)].filter(
      (turnId) => !dismissedIds.has(turnId) && catalogue.nodesCovering(turnId).length === 0,
    );
    if (fresh.length === 0) return;
    for (const turnId of fresh) dismissedIds.add(turnId);
    await dismissed.add(fresh);
  }

  async function open(written: ReadonlyMap<string, string>): Promise<void> {
    for (const turnId of await dismissed.load()) dismissedIds.add(turnId);
    const loaded = await nodeFiles.load();
    problems = loaded.problems;
    catalogue.put(loaded.nodes);
    const indexed = await index.entries();
    const away = [...indexed].filter(([id]) => catalogue.get(id) === undefined);
    await dismiss(away.flatMap(([, { turns }]) => turns));
    const changed = loaded.nodes.filter((node) => differs(indexed.get(node.node_id), node));
    // If most digests differ, another version computes them differently; no one edits most files at once.
    const isKnown = changed.length <= Math.max(FEW_EDITED, EDITED_SHARE * indexed.size);
    const byHand = changed.filter(
      (node) => (isKnown || isDraft(node)) && written.get(node.node_id) !== contentDigest(node),
    );
    const users = byHand.filter(isOwn).map(asUsers);
    if (users.length > 0) await nodeFiles.save(users);
    catalogue.put(users);
  }

  function adopt(nodes: readonly MemoryNode[], ids: readonly string[]): void {
    take(nodes);
    drop(ids.flatMap((id) => catalogue.get(id) ?? []));
  }

  const held: LockedStore = { save, remove, refresh, dismiss, adopt };
  return {
    open: (written = new Map()) => exclusive(() => open(written)),
    exclusive,
    save: (nodes, texts) => exclusive(() => save(nodes, texts)),
    remove: (ids, turnIds) => exclusive(() => remove(ids, turnIds)),
    refresh: (files) => exclusive(() => refresh(files)),
    problems: () => problems,
    isDismissed: (turnId) => dismissedIds.has(turnId),
  };
}

/** What was written to the files goes into the catalogue and, where its rows say something else, into the index. */
function createMirror(catalogue: NodeRegistry, indexer: Indexer) {
  function take(nodes: readonly MemoryNode[], texts?: readonly TurnText[]): void {
    const before = new Map(nodes.map((node) => [node.node_id, catalogue.get(node.node_id)]));
    catalogue.put(nodes);
    const stale = nodes.filter((node) => rowsDiffer(before.get(node.node_id), node));
    const emptied = stale.filter((node) => {
      const old = before.get(node.node_id);
      return (
        old !== undefined && (isRedirect(node) || !isDeepStrictEqual([old.turns, old.facts], [node.turns, node.facts]))
      );
    });
    if (emptied.length > 0) void indexer.remove(emptied.map((node) => node.node_id));
    const searched = stale.filter((node) => !isRedirect(node) && !isCall(node));
    if (searched.length > 0) indexer.upsert(searched, texts);
  }

  function drop(nodes: readonly MemoryNode[]): void {
    catalogue.remove(nodes.map((node) => node.node_id));
    if (nodes.length > 0) void indexer.remove(nodes.map((node) => node.node_id));
  }

  return { take, drop };
}

/** Whether a node that was read says the same as the one of the catalogue; compared once. */
function createAgreement(catalogue: NodeRegistry): (read: MemoryNode) => boolean {
  const agreed = new WeakMap<MemoryNode, MemoryNode>();
  return (read) => {
    const known = catalogue.get(read.node_id);
    if (known === undefined) return false;
    if (read === known || agreed.get(read) === known) return true;
    if (!isDeepStrictEqual(read, known)) return false;
    agreed.set(read, known);
    return true;
  };
}

function rowsDiffer(before: MemoryNode | undefined, after: MemoryNode): boolean {
  return (
    before === undefined || isRedirect(before) !== isRedirect(after) || contentDigest(before) !== contentDigest(after)
  );
}

function differs(entry: IndexEntry | undefined, node: MemoryNode): boolean {
  return entry !== undefined && entry.digest !== '' && entry.digest !== contentDigest(node);
}

/**
 * The node to keep after a person edited it. An edit of its content makes the person its author, so that no model
 * rewrites it and no consolidation merges it away; any edit of a draft does. Pieces of documents and groups keep their
 * author.
 */
export function keptByHand(edited: MemoryNode, before: MemoryNode): MemoryNode {
  if (!isOwn(edited) || (!isDraft(edited) && contentDigest(edited) === contentDigest(before))) return edited;
  return asUsers(edited);
}

/** Whether it may become a person's own. */
export function isOwn(node: MemoryNode): boolean {
  return !isRedirect(node) && !isFromText(node) && node.kind !== 'tool';
}

export function asUsers(node: MemoryNode): MemoryNode {
  return node.author.by === 'user' ? node : { ...node, author: { by: 'user' }, status: 'current' };
}
