import { turnContentHash } from './ingest/imported-turn.ts';
import type { TurnReader } from './ingest/turn-reader.ts';
import type { TurnRegistry } from './ingest/turn-registry.ts';
import type { Claim } from './model/claim.ts';
import { isGroup, type MemoryNode } from './model/node.ts';
import type { IdSetFile } from './storage/fs/id-set-file.ts';
import type { Indexer } from './storage/indexer.ts';
import type { NodeFiles } from './storage/node-files.ts';
import type { NodeRegistry } from './storage/node-registry.ts';
import type { Store } from './storage/node-store.ts';
import type { SnapshotService } from './storage/snapshots.ts';
import type { Journal } from './storage/turn-log.ts';
import { isCall } from './text/tool-call-nodes.ts';
import { withoutRevisionsBy } from './text/validity.ts';

interface Parts {
  readonly journal: Journal;
  readonly nodeFiles: NodeFiles;
  readonly turnRegistry: TurnRegistry;
  readonly catalogue: NodeRegistry;
  readonly indexer: Indexer;
  readonly snapshooter: SnapshotService;
  readonly store: Store;
  readonly turnReader: TurnReader;
}

export interface Removal {
  /** The user removed the turn: it is not captured again. */
  isForgotten(turnId: string): boolean;
  /** The user removed the turn, or took its node out of the files: no node is made of it again. */
  isGone(turnId: string): boolean;
  /** See `removeNodes`; a snapshot is taken first. */
  remove(nodes: readonly MemoryNode[], turnIds?: readonly string[]): Promise<void>;
}

export async function openRemoval(parts: Parts & { readonly forgotten: IdSetFile }): Promise<Removal> {
  const { turnRegistry, forgotten, snapshooter, store } = parts;
  const removed = new Set(await forgotten.load());
  for (const turnId of removed) turnRegistry.reserve(turnId);

  async function forget(turnIds: readonly string[]): Promise<void> {
    await forgotten.add(turnIds);
    for (const turnId of turnIds) removed.add(turnId);
  }

  return {
    isForgotten: (turnId) => removed.has(turnId),
    isGone: (turnId) => turnRegistry.aliases(turnId).some((form) => removed.has(form) || store.isDismissed(form)),
    async remove(nodes, turnIds) {
      await snapshooter.take('rm');
      await removeNodes(nodes, { ...parts, forget }, turnIds);
    },
  };
}

/**
 * Removes every trace of these nodes: their sections and backups, pointers to them, index rows and their bytes, raw
 * turns, claims of briefs that rest on them, and all of it in snapshots. An interrupted removal can be repeated.
 *
 * @param of  the turns that go with them; by default all of theirs
 */
async function removeNodes(
  chosen: readonly MemoryNode[],
  parts: Parts & { readonly forget: (turnIds: readonly string[]) => Promise<void> },
  of: readonly string[] = chosen.flatMap((node) => node.turns),
): Promise<void> {
  const { turnRegistry, catalogue, indexer, journal, nodeFiles, snapshooter, store, turnReader } = parts;
  const formsOf = (names: readonly string[]): string[] =>
    names.flatMap((turnId) => [turnId, ...turnRegistry.aliases(turnId)]);
  const turns = formsOf(of);
  const rounds = formsOf(turns.flatMap((turnId) => turnRegistry.partsOf(turnId)));
  const turnIds = [...new Set([...turns, ...rounds])];
  const bundles = rounds.flatMap((turnId) => catalogue.nodesCovering(turnId)).flatMap((id) => catalogue.get(id) ?? []);
  const named = [...new Set([...chosen, ...bundles])];
  const calls = named.flatMap((node) => catalogue.childrenOf(node.node_id)).filter(isCall);
  // A group's text quotes its members.
  const groups = named.flatMap((node) => catalogue.get(node.parent_node_id ?? '') ?? []).filter(isGroup);
  const nodes = [...new Set([...named, ...calls, ...groups])];
  const sessions = new Set([
    ...turnIds.flatMap((turnId) => turnRegistry.sessionOf(turnId) ?? []),
    ...nodes.map(sessionOf),
  ]);
  // Turns that stay although some of their rounds are removed.
  const wholes = turnIds
    .flatMap((turnId) => turnRegistry.wholesOf(turnId))
    .filter(({ turnId }) => !turnIds.includes(turnId));
  await parts.forget([...turnIds, ...(await sayingsOf(turnIds, parts))]);
  for (const turnId of turnIds) turnRegistry.reserve(turnId);
  const copies = wholes.filter(({ isCopied }) => isCopied).map(({ turnId }) => turnId);
  for (const [sessionId, own] of bySession([...turnIds, ...copies], nodes, turnRegistry))
    await journal.remove(sessionId, own);
  turnReader.drop([...turnIds, ...wholes.map(({ turnId }) => turnRegistry.canonicalId(turnId))]);
  turnRegistry.drop(turnIds);
  for (const sessionId of sessions) {
    const isOver = turnRegistry.session(sessionId) === undefined;
    await cleanBrief({ sessionId, isOver, gone: new Set(turnIds) }, nodeFiles);
  }
  await store.exclusive(async (held) => {
    const ids = nodes.flatMap((node) => [
      node.node_id,
      ...catalogue.pointersTo(node.node_id).map((each) => each.node_id),
    ]);
    const gone = new Set(ids);
    const relinked = catalogue.every().filter((node) => !gone.has(node.node_id) && mentions(node, gone));
    await held.remove(ids, turnIds);
    await held.save(relinked.map((node) => withoutLinks(node, gone)));
    const kept = wholes
      .flatMap(({ turnId }) => turnRegistry.aliases(turnId))
      .flatMap((turnId) => catalogue.nodesCovering(turnId));
    await reindex([...new Set(kept)], parts);
    await snapshooter.scrub(gone, new Set(turnIds), (id) => catalogue.get(id) !== undefined);
  });
  await indexer.optimize();
}

/** Content hashes of the turns, so that no import restores them under another id. */
async function sayingsOf(turnIds: readonly string[], { turnRegistry, turnReader }: Parts): Promise<string[]> {
  const gone = new Set(turnIds.map(turnRegistry.canonicalId));
  const sessions = new Set(turnIds.flatMap((turnId) => turnRegistry.sessionOf(turnId) ?? []));
  const read = await Promise.all([...sessions].map(async (id) => ({ id, turns: await turnReader.ofSession(id) })));
  return read.flatMap(({ id, turns }) =>
    turns.filter(({ turnId }) => gone.has(turnId)).map((turn) => turnContentHash(id, turn)),
  );
}

/** Their rows hold words of removed rounds. */
async function reindex(ids: readonly string[], { catalogue, indexer }: Parts): Promise<void> {
  if (ids.length === 0) return;
  await indexer.remove(ids);
  indexer.upsert(ids.flatMap((id) => catalogue.get(id) ?? []));
}

function mentions({ links, parent_node_id, superseded_by, facts }: MemoryNode, gone: ReadonlySet<string>): boolean {
  if (facts.some((fact) => gone.has(fact.superseded_by ?? ''))) return true;
  return links.some((id) => gone.has(id)) || gone.has(parent_node_id ?? '') || gone.has(superseded_by ?? '');
}

function withoutLinks(node: MemoryNode, gone: ReadonlySet<string>): MemoryNode {
  const kept = (id: string | null): string | null => (gone.has(id ?? '') ? null : id);
  const valid = withoutRevisionsBy(node, gone);
  return {
    ...valid,
    links: node.links.filter((id) => !gone.has(id)),
    parent_node_id: kept(node.parent_node_id),
    superseded_by: kept(valid.superseded_by),
  };
}

function bySession(
  turnIds: readonly string[],
  nodes: readonly MemoryNode[],
  turnRegistry: TurnRegistry,
): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const put = (sessionId: string, turnId: string) => found.set(sessionId, [...(found.get(sessionId) ?? []), turnId]);
  for (const turnId of turnIds) {
    const sessionId = turnRegistry.sessionOf(turnId) ?? nodes.find((node) => node.turns.includes(turnId))?.session_id;
    if (sessionId !== undefined) put(sessionId, turnId);
  }
  return found;
}

const sessionOf = ({ session_id }: MemoryNode): string => session_id;

/** Removes claims that rest on removed turns; all of them where no turn of the session is left. */
async function cleanBrief(
  { sessionId, isOver, gone }: { sessionId: string; isOver: boolean; gone: ReadonlySet<string> },
  nodeFiles: NodeFiles,
): Promise<void> {
  const brief = await nodeFiles.readBrief(sessionId);
  if (brief === null) return;
  const rests = ({ sources }: Claim): boolean => isOver || sources.some((turnId) => gone.has(turnId));
  const active = brief.active.filter((claim) => !rests(claim));
  const hints = brief.hints.filter((claim) => !rests(claim));
  if (active.length + hints.length < brief.active.length + brief.hints.length) {
    await nodeFiles.writeBrief({ ...brief, active, hints });
  }
}
