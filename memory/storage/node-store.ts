import { isDeepStrictEqual } from 'node:util';
import { createMutex } from '../../common/async.ts';
import type { Problem } from '../../common/errors.ts';
import { grouped } from '../../common/map.ts';
import { idTail } from '../model/markdown.ts';
import { internNode, isDraft, isFromText, isRedirect, type MemoryNode } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import type { IndexEntry, SearchIndex } from '../search/search-index.ts';
import { isCall } from '../text/actions.ts';
import type { IdSetFile } from './fs/set-files.ts';
import { contentDigest, type Indexer } from './index-writer.ts';
import type { NodeFiles, SeenIds } from './node-files.ts';
import type { NodeRegistry } from './node-registry.ts';

/** Of all nodes; a few may always be. */
const EDITED_SHARE = 0.5;
const FEW_EDITED = 5;

/** Node files, catalogue and index as one: changed by one at a time, and the files win. */
export type Store = ReturnType<typeof createStore>;
/** Operations that require the store's lock. */
export type LockedStore = Parameters<Parameters<Store['exclusive']>[0]>[0];

export type StoreParts = {
  readonly nodeFiles: NodeFiles;
  readonly dismissed: IdSetFile;
  readonly index: SearchIndex;
  readonly catalogue: NodeRegistry;
  readonly indexer: Indexer;
  /** Keeps memory as it is now; returns the id of the snapshot. */
  readonly snapshot: () => Promise<string>;
};

type ReadNodes = Parameters<NodeFiles['save']>[1];

const MAX_NOTES = 10;

export function createStore({ nodeFiles, dismissed, index, catalogue, indexer, snapshot }: StoreParts) {
  const dismissedIds = new Set<string>();
  /** Nodes that were taken out of the files, or broken in them: they may come back changed. */
  const removals = new Map<string, MemoryNode>();
  const reader = createReader(nodeFiles, snapshot);
  const lock = createMutex();
  const { take, drop } = createMirror(catalogue, indexer);
  /** What files and catalogue were when they said the same. */
  let equal: { readonly nodes: readonly MemoryNode[]; readonly revision: number } | null = null;

  /** Files first, then catalogue, then index; `texts` of the turns, where at hand. `read`: see `NodeFiles.save`. */
  async function save(nodes: readonly MemoryNode[], texts?: readonly TurnText[], read?: ReadNodes): Promise<void> {
    if (nodes.length === 0) return;
    // Made of parts of turns, which would stay in memory with them.
    const own = nodes.map(internNode);
    await nodeFiles.save(own, read);
    take(own, texts);
    reader.wrote(own);
  }

  /** `turnIds` of the turns of which no copy may stay. */
  async function remove(ids: readonly string[], turnIds: readonly string[] = []): Promise<void> {
    await nodeFiles.remove(ids, turnIds);
    drop(ids.flatMap((id) => catalogue.get(id) ?? []));
  }

  /** Takes over what was changed on disk; all of it, or what stands in these files. */
  async function refresh(files?: readonly string[]): Promise<void> {
    const loaded = await reader.load(files);
    if (equal?.nodes === loaded.nodes && equal.revision === catalogue.revision()) return;
    const onDisk = new Set(loaded.nodes.map((node) => node.node_id));
    const missing = catalogue.every().filter((node) => !onDisk.has(node.node_id));
    const { kept, lost } = await reader.sortMissing(missing, loaded);
    const changed = loaded.nodes.filter((node) => !isDeepStrictEqual(node, catalogue.get(node.node_id)));
    if (missing.length + changed.length === 0) equal = { nodes: loaded.nodes, revision: catalogue.revision() };
    for (const node of lost) removals.set(node.node_id, node);
    const orphans = lost.flatMap((node) => catalogue.getChildren(node.node_id)).filter(isCall);
    catalogue.remove(lost.map((node) => node.node_id));
    const byHand = editedByHand(changed, (id) => removals.get(id) ?? catalogue.get(id));
    take(changed);
    drop(lost);
    if (orphans.length > 0) await remove(orphans.map((node) => node.node_id));
    for (const node of changed) removals.delete(node.node_id);
    await dismiss(lost.filter((node) => !isRedirect(node)).flatMap((node) => node.turns));
    await save(kept);
    // The user may have saved the file again since it was read.
    await save(byHand, undefined, new Map(changed.map((node) => [node.node_id, node])));
    // A section that is put back may take the place of one that does not validate.
    if (kept.length > 0) await reader.load();
  }

  const isSettled = (turnId: string): boolean => dismissedIds.has(turnId) || catalogue.nodesCovering(turnId).length > 0;

  /** Makes no node of these turns, now or later; they stay in the journal. Turns with a node are left as they are. */
  async function dismiss(turnIds: readonly string[]): Promise<void> {
    const fresh = [...new Set(turnIds)].filter((turnId) => !isSettled(turnId));
    if (fresh.length === 0) return;
    for (const turnId of fresh) dismissedIds.add(turnId);
    await dismissed.add(fresh);
  }

  async function open(digests: ReadonlyMap<string, string>): Promise<void> {
    for (const turnId of await dismissed.load()) dismissedIds.add(turnId);
    const loaded = await reader.load();
    catalogue.put(loaded.nodes);
    const indexed = await index.entries();
    const away = [...indexed].filter(([id]) => catalogue.get(id) === undefined);
    // The turns of those that were not seen are summarized again.
    const seen = away.filter(([id, { sessionId }]) => !loaded.isUnseen(id, sessionId));
    await dismiss(seen.flatMap(([, { turns }]) => turns));
    const changed = loaded.nodes.filter((node) => differs(indexed.get(node.node_id), node));
    // If most digests differ, another version computes them differently; no one edits most files at once.
    const isKnown = changed.length <= Math.max(FEW_EDITED, EDITED_SHARE * indexed.size);
    const byHand = changed.filter(
      (node) => (isKnown || isDraft(node)) && digests.get(node.node_id) !== contentDigest(node),
    );
    const users = byHand.filter(isOwn).map(asUsers);
    if (users.length > 0) await nodeFiles.save(users);
    catalogue.put(users);
  }

  /** Takes over what the caller has written to the files itself, and the ids it took out of them. */
  function adopt(nodes: readonly MemoryNode[], ids: readonly string[]): void {
    take(nodes);
    reader.wrote(nodes);
    drop(ids.flatMap((id) => catalogue.get(id) ?? []));
  }

  const held = { save, remove, refresh, dismiss, adopt };
  return {
    /**
     * Reads the files for the first time, and what was edited while the daemon was stopped. `written` are digests of nodes,
     * by id, that we wrote last ourselves.
     */
    open: (digests: ReadonlyMap<string, string> = new Map()) => lock(() => open(digests)),
    exclusive: <T>(work: (locked: typeof held) => Promise<T>): Promise<T> => lock(() => work(held)),
    save: (...change: Parameters<typeof save>) => lock(() => save(...change)),
    remove: (...change: Parameters<typeof remove>) => lock(() => remove(...change)),
    refresh: (files?: readonly string[]) => lock(() => refresh(files)),
    /** Files and sections that do not validate. */
    problems: reader.problems,
    /** What happened to memories because others changed their files, the newest last. */
    notes: reader.notes,
    /** The user took the node of this turn out of its file, or it leaves nothing to remember: no node is made of it. */
    isDismissed: (turnId: string) => dismissedIds.has(turnId),
    /** A node stands for the turn, or none shall. */
    isSettled,
  };
}

/** Nodes that are kept in another form than the user left them in. */
function editedByHand(changed: readonly MemoryNode[], getNode: (id: string) => MemoryNode | undefined): MemoryNode[] {
  return changed.flatMap((node) => {
    const before = getNode(node.node_id);
    const kept = before === undefined || isDeepStrictEqual(before, node) ? node : keptByHand(node, before);
    return kept === node ? [] : [kept];
  });
}

/** Reads the node files, and tells what others took out of them from what an old copy lacks. */
function createReader(nodeFiles: NodeFiles, snapshot: StoreParts['snapshot']) {
  let problems: readonly Problem[] = [];
  const notes: Problem[] = [];
  /** Ids of nodes that our writes put into a file, so that its `seen` names them. */
  const writtenIds = new Set<string>();
  let last: readonly MemoryNode[] = [];

  async function load(files?: readonly string[]) {
    const loaded = await nodeFiles.load(files);
    problems = loaded.problems;
    const seen: SeenIds = loaded.seen ?? new Map();
    /** Who wrote the session's file had a copy from before this node. */
    const isUnseen = (nodeId: string, sessionId: string): boolean => seen.get(sessionId)?.has(idTail(nodeId)) === false;
    for (const { node_id, session_id } of last === loaded.nodes ? [] : loaded.nodes)
      if (!isUnseen(node_id, session_id)) writtenIds.add(node_id);
    last = loaded.nodes;
    const isBroken = (nodeId: string): boolean => loaded.places?.has(nodeId) === true;
    return { nodes: loaded.nodes, isUnseen, isBroken };
  }

  function note(sessionId: string, message: string): void {
    notes.push({ file: `session ${sessionId}`, message });
    if (notes.length > MAX_NOTES) notes.shift();
  }

  return {
    load,
    /** Sorts nodes that left the files. A snapshot keeps all; those newer than what the saved copy had read stay. */
    async sortMissing(nodes: readonly MemoryNode[], { isUnseen, isBroken }: Awaited<ReturnType<typeof load>>) {
      const isKept = ({ node_id, session_id }: MemoryNode) => writtenIds.has(node_id) && isUnseen(node_id, session_id);
      const sorted = { kept: nodes.filter(isKept), lost: nodes.filter((node) => !isKept(node)) };
      const taken = sorted.lost.filter((node) => !isRedirect(node) && !isBroken(node.node_id));
      if (sorted.kept.length + taken.length === 0) return sorted;
      const id = await snapshot();
      for (const [sessionId, own] of grouped(sorted.kept, (node) => node.session_id))
        note(sessionId, `an old copy of its file was saved over ${own.length} newer memories; they were put back`);
      for (const [sessionId, own] of grouped(taken, (node) => node.session_id)) {
        const next = `\`comet-cc memory rollback ${id}\` undoes it`;
        note(sessionId, `${own.length} memories were taken out of its file; ${next}`);
      }
      return sorted;
    },
    wrote(nodes: readonly MemoryNode[]): void {
      for (const { node_id } of nodes) writtenIds.add(node_id);
    },
    problems: (): readonly Problem[] => problems,
    notes: (): readonly Problem[] => notes,
  };
}

/** What was written to the files goes into the catalogue and, where its rows say something else, into the index. */
function createMirror(catalogue: NodeRegistry, indexer: Indexer) {
  function take(nodes: readonly MemoryNode[], texts?: readonly TurnText[]): void {
    const before = new Map(nodes.map((node) => [node.node_id, catalogue.get(node.node_id)]));
    catalogue.put(nodes);
    const stale = nodes.filter((node) => {
      const old = before.get(node.node_id);
      return old === undefined || isRedirect(old) !== isRedirect(node) || contentDigest(old) !== contentDigest(node);
    });
    const emptied = stale.filter((node) => {
      const { turns, facts } = before.get(node.node_id) ?? {};
      return turns !== undefined && (isRedirect(node) || !isDeepStrictEqual([turns, facts], [node.turns, node.facts]));
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
export const isOwn = (node: MemoryNode): boolean => !isRedirect(node) && !isFromText(node) && node.kind !== 'tool';

export function asUsers(node: MemoryNode): MemoryNode {
  return node.author.by === 'user' ? node : { ...node, author: { by: 'user' }, status: 'current' };
}
