import { isCleanOrigin, lowestOrigin, type Origin } from '../common/turn.ts';
import type { Consolidator } from './consolidation/consolidation.ts';
import { withFreshFiles } from './edit.ts';
import { renderSection } from './model/markdown.ts';
import type { MemoryNode, StoredBrief } from './model/node.ts';
import type { MemoryOptions, MemoryParts } from './parts.ts';
import { cappedNode } from './share/filter.ts';
import { findTask, taskKey } from './share/row.ts';
import { OWN } from './share/state.ts';
import { type ArchivedPage, type ArchiveFormat, parseArchive, renderArchive, scrubbed } from './storage/archive.ts';
import type { SnapshotInfo } from './storage/fs/snapshot-files.ts';
import { archivedFiles } from './storage/snapshot.ts';

export type Archives = ReturnType<typeof createArchives>;

type Parts = MemoryParts & Pick<Consolidator, 'takeBackBriefs'> & Pick<MemoryOptions, 'share'>;

/** Nodes and briefs as one text: exports and snapshots. */
export function createArchives(parts: Parts) {
  const { nodeFiles, redactor, snapshots, catalogue, snapshooter, store, topicPages, removal } = parts;
  async function saveBriefs(briefs: readonly StoredBrief[], wins: (old: StoredBrief, fresh: StoredBrief) => boolean) {
    let writtenCount = 0;
    for (const brief of briefs) {
      const old = await nodeFiles.readBrief(brief.session_id);
      if (old !== null && (JSON.stringify(old) === JSON.stringify(brief) || !wins(old, brief))) continue;
      await nodeFiles.writeBrief(brief);
      writtenCount += 1;
    }
    return writtenCount;
  }

  /** Returns how many topic pages changed. */
  async function savePages(pages: readonly ArchivedPage[] | undefined, isWhole: boolean): Promise<number> {
    if (pages === undefined) return 0;
    const rewrites = await topicPages.planRestore(pages, isWhole, catalogue.every());
    for (const rewrite of rewrites) await topicPages.files.replace(rewrite);
    return rewrites.filter(({ name }) => name.startsWith('topics/')).length;
  }

  /** Our exports are redacted when they are written, but a user may have edited one. */
  async function redacted<T>(value: T): Promise<T> {
    return JSON.parse(await redactor.inSlices.json(JSON.stringify(value))) as T;
  }

  return {
    /** Without raw turns. */
    exportAll: (format: ArchiveFormat): Promise<string> =>
      withFreshFiles(store, async () => {
        const [nodes, briefs] = [catalogue.every(), await nodeFiles.briefs()];
        const files = { ...(await archivedFiles(parts)), tasks: await parts.tasks.texts() };
        return renderArchive({ nodes, briefs, ...files }, format);
      }),
    /** Imports an export, all of it or nothing. @throws CometError `node_invalid`, naming line and key */
    importArchive: (text: string, isTrusted = true, again = false) =>
      withFreshFiles(store, async (store) => {
        const read = parseArchive(text);
        const isWhole = again || !removal.hasForgotten();
        const kept = isWhole ? read : scrubbed(read, removal.isForgotten, (id) => catalogue.get(id) !== undefined);
        const { nodes, briefs, pages, facts = [] } = kept;
        const ownTasks = isTrusted ? (kept.tasks ?? []) : [];
        const removed = new Set(again ? [] : await parts.share?.removed.load());
        const tasks = ownTasks.filter((file) => !removed.has(taskKey(findTask(file) ?? { name: '', created: '' })));
        const before = new Map(nodes.map(({ node_id }) => [node_id, catalogue.get(node_id)]));
        const fresh = (await Promise.all(nodes.map(redacted))).map((node) => {
          const previous = before.get(node.node_id);
          return withCappedTrust(isTrusted || isSame(node, previous) ? node : cappedNode(node, 'tool'), previous);
        });
        const changed = fresh.filter((node) => !isSame(node, before.get(node.node_id)));
        const added = changed.filter((node) => before.get(node.node_id) === undefined).length;
        if (changed.length + briefs.length > 0) await snapshooter.take('import');
        await store.save(changed);
        const given = await Promise.all(briefs.map(redacted));
        const cleanBriefs = isTrusted ? given : given.map(briefAsToolText);
        const written = await saveBriefs(cleanBriefs, (old, brief) => brief.updated_at > old.updated_at);
        const own = isTrusted && pages !== undefined ? await redacted(pages) : undefined;
        if (isTrusted) await parts.facts.restore(await redacted(facts), false);
        let restored = 0;
        for (const file of await redacted(tasks)) if (await parts.tasks.restore(file)) restored += 1;
        return {
          kind: 'nodes' as const,
          ...{ added, replaced: changed.length - added, unchanged: nodes.length - changed.length },
          /** Because the user had removed them. */
          skipped: read.nodes.length - nodes.length + ownTasks.length - tasks.length,
          ...{ briefs: written, pages: await savePages(own, false), tasks: restored },
        };
      }),
    /** Newest first. */
    listSnapshots: (): Promise<readonly SnapshotInfo[]> => snapshots.list(),
    /** Counts of nodes and briefs; `undo` is the snapshot that undoes it. @throws CometError `not_found` or `ambiguous_id` */
    rollback: (id: string) =>
      withFreshFiles(store, async (store) => {
        const snapshot = await snapshooter.read(id);
        const { at = '', reason } = (await snapshots.list()).find((each) => each.id.startsWith(id)) ?? {};
        const atMs = Date.parse(at);
        const before = await snapshooter.take('rollback');
        const remove = await findMadeSince(parts, snapshot.nodes, { atMs, ofImport: reason === 'import' });
        const changed = snapshot.nodes.filter((node) => !isSame(node, catalogue.get(node.node_id)));
        await store.save(changed);
        if (remove.length > 0) await store.remove(remove);
        const briefs = await saveBriefs(snapshot.briefs, () => true);
        const pages = await savePages(snapshot.pages, true);
        if (snapshot.facts !== undefined) await parts.facts.restore(snapshot.facts, true, reason !== 'import');
        await parts.takeBackBriefs(id, atMs);
        return { restored: changed.length, removed: remove.length, briefs, pages, undo: before };
      }),
  };
}

const capped = <T extends { readonly origin?: Origin }>(item: T): T =>
  item.origin === undefined ? item : { ...item, origin: lowestOrigin([item.origin, 'tool']) };

function briefAsToolText({ active, hints, ...brief }: StoredBrief): StoredBrief {
  return { ...brief, active: active.map(capped), hints: hints.map(capped) };
}

/** An archive may come from anywhere: it raises no origin, that of a fact neither, and pins nothing of unclean origin. */
function withCappedTrust(node: MemoryNode, earlier: MemoryNode | undefined): MemoryNode {
  if (earlier === undefined) return unpinnedWhereUnclean(node);
  const origin = lowestOrigin([node.origin, earlier.origin]);
  const facts = node.facts.map((fact) => {
    const same = earlier.facts.find(({ concept, value }) => concept === fact.concept && value === fact.value);
    const highest = same === undefined ? origin : (same.origin ?? earlier.origin);
    return fact.origin === undefined ? fact : { ...fact, origin: lowestOrigin([fact.origin, highest]) };
  });
  return unpinnedWhereUnclean({ ...node, origin, facts });
}

function unpinnedWhereUnclean(node: MemoryNode): MemoryNode {
  if (isCleanOrigin(node.origin)) return node;
  const { pinned_from: _, pinned_in: __, ...rest } = node;
  return { ...rest, recall_mode: 'active' };
}

const isSame = (node: MemoryNode, earlier: MemoryNode | undefined): boolean =>
  earlier !== undefined && renderSection(node) === renderSection(earlier) && node.project === earlier.project;

/**
 * Nodes that a rollback removes. What was remembered from conversations since a snapshot, or came from another machine,
 * stays, as long as nothing in the snapshot stands for the same turns; so do documents, unless their import is undone.
 */
async function findMadeSince(
  { catalogue, share, turnRegistry }: Parts,
  snapshot: readonly MemoryNode[],
  { atMs, ofImport }: { readonly atMs: number; readonly ofImport: boolean },
): Promise<string[]> {
  const then = new Set(snapshot.map((node) => node.node_id));
  const covered = new Set(snapshot.flatMap((node) => node.turns));
  const known = (await share?.stateFile.load().catch(() => null))?.known ?? {};
  const stays = ({ node_id, created_at, kind, turns }: MemoryNode): boolean => {
    if (then.has(node_id) || (known[node_id]?.owner ?? OWN) !== OWN) return true;
    const fresh = turns.filter((turnId) => !covered.has(turnId));
    if (Date.parse(created_at) > atMs) return fresh.length > 0 && !(ofImport && kind === 'document');
    // Past conversations that were imported since.
    return !ofImport && fresh.some((turnId) => turnRegistry.getSession(turnId) !== undefined);
  };
  return catalogue.every().flatMap((node) => (stays(node) ? [] : [node.node_id]));
}
