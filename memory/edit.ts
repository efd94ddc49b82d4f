import { CometError } from '../common/errors.ts';
import { isCleanOrigin, lowestOrigin } from '../common/turn.ts';
import type { Redactor } from '../redact/index.ts';
import { type Archive, type ArchiveFormat, parseArchive, renderArchive } from './model/archive.ts';
import { fromSection, withFields } from './model/edit.ts';
import { renderSection } from './model/markdown.ts';
import type { MemoryNode } from './model/node.ts';
import { pinnedIn, unpinnedIn } from './model/pin.ts';
import { planRollback } from './model/rollback.ts';
import { keptByHand } from './model/user-edits.ts';
import type { NodeFiles, StoredBrief } from './storage/node-files.ts';
import type { NodeRegistry } from './storage/node-registry.ts';
import type { LockedStore, Store } from './storage/node-store.ts';
import type { SnapshotInfo, Snapshots } from './storage/snapshot-files.ts';
import type { SnapshotService } from './storage/snapshots.ts';

/** A node's whole section, or single fields given as texts. */
export type NodeChange =
  | { readonly text: string /** The section that was edited. */; readonly base: string }
  | { readonly set: Readonly<Record<string, string>> };

export interface ImportReport {
  readonly kind: 'nodes';
  readonly added: number;
  readonly replaced: number;
  readonly unchanged: number;
  readonly briefs: number;
}

export interface RollbackReport {
  /** Nodes that were put back as they were. */
  readonly restored: number;
  readonly removed: number;
  readonly briefs: number;
  /** The snapshot that undoes it. */
  readonly undo: string;
}

export interface Editing {
  /** The node's section as its file has it. @throws as `show` */
  section(id: string): Promise<{ readonly id: string; readonly text: string }>;
  /** @throws as `show`; CometError `node_invalid` naming the key and what was expected, and nothing is changed */
  edit(id: string, change: NodeChange): Promise<MemoryNode>;
  /** Pinned nodes are always shown in their project, or in the one of `projectDir`. @throws as `edit` */
  pin(ids: readonly string[], isPinned: boolean, projectDir?: string): Promise<readonly MemoryNode[]>;
  /** Nodes and briefs, without raw turns. */
  exportAll(format: ArchiveFormat): Promise<string>;
  /** Imports an export, all of it or nothing. @throws CometError `node_invalid`, naming line and key */
  importAll(text: string): Promise<ImportReport>;
  /** Newest first. */
  snapshots(): Promise<readonly SnapshotInfo[]>;
  /** @throws CometError `not_found` or `ambiguous_id` */
  rollback(snapshot: string): Promise<RollbackReport>;
}

type Parts = {
  readonly nodeFiles: NodeFiles;
  readonly redactor: Redactor;
  readonly snapshots: Snapshots;
  readonly projectOf: (directory: string | null) => string;
  readonly catalogue: NodeRegistry;
  readonly snapshooter: SnapshotService;
  readonly store: Store;
  readonly resolve: (prefix: string) => MemoryNode;
};

/** What a person changes on purpose; each change begins with what stands on disk and can be rolled back. */
export function createEditing(parts: Parts): Editing {
  const { catalogue, nodeFiles, projectOf, redactor, resolve, snapshooter, store } = parts;

  /** Everything as it stands on disk, nobody else changing it. */
  const onDisk = <T>(work: (held: LockedStore) => Promise<T>): Promise<T> =>
    store.exclusive(async (held) => {
      await held.refresh();
      return work(held);
    });

  async function saveBriefs(briefs: readonly StoredBrief[], wins: (old: StoredBrief, fresh: StoredBrief) => boolean) {
    let written = 0;
    for (const brief of briefs) {
      const old = await nodeFiles.readBrief(brief.session_id);
      if (old !== null && (JSON.stringify(old) === JSON.stringify(brief) || !wins(old, brief))) continue;
      await nodeFiles.writeBrief(brief);
      written += 1;
    }
    return written;
  }

  return {
    section: (id) =>
      onDisk(async () => {
        const node = resolve(id);
        return { id: node.node_id, text: renderSection(node) };
      }),
    edit: (id, change) =>
      onDisk(async (held) => {
        const node = resolve(id);
        if ('text' in change && change.base !== renderSection(node)) {
          throw new CometError('node_invalid', `${node.node_id} was changed meanwhile; edit it again`);
        }
        const edited =
          'text' in change
            ? fromSection(node, await redactor.full.text(change.text))
            : withFields(node, await redacted(change.set));
        if (JSON.stringify(edited) === JSON.stringify(withFields(node, {}))) return node;
        await snapshooter.take('edit');
        const saved = keptByHand(edited, node);
        await held.save([saved]);
        return saved;
      }),
    pin: (ids, isPinned, projectDir) =>
      onDisk(async (held) => {
        const nodes = [...new Set(ids.map(resolve))].map((node) => {
          const project = projectDir === undefined ? node.project : projectOf(projectDir);
          return isPinned ? pinnedIn(node, project) : unpinnedIn(node, project);
        });
        await held.save(nodes.filter((node) => catalogue.get(node.node_id) !== node));
        return nodes;
      }),
    exportAll: (format) =>
      onDisk(async () => renderArchive({ nodes: catalogue.every(), briefs: await nodeFiles.briefs() }, format)),
    importAll: (text) =>
      onDisk(async (held) => {
        const { nodes, briefs } = parseArchive(text);
        const before = new Map(nodes.map(({ node_id }) => [node_id, catalogue.get(node_id)]));
        const fresh = (await Promise.all(nodes.map(clean))).map((node) => trusted(node, before.get(node.node_id)));
        const changed = fresh.filter((node) => !isSame(node, before.get(node.node_id)));
        const added = changed.filter((node) => before.get(node.node_id) === undefined).length;
        if (changed.length + briefs.length > 0) await snapshooter.take('import');
        await held.save(changed);
        const written = await saveBriefs(
          await Promise.all(briefs.map(cleanBrief)),
          (old, given) => given.updated_at > old.updated_at,
        );
        const unchanged = nodes.length - changed.length;
        return { kind: 'nodes', added, replaced: changed.length - added, unchanged, briefs: written };
      }),
    snapshots: () => parts.snapshots.list(),
    rollback: (id) =>
      onDisk(async (held) => {
        const snapshot: Archive = await snapshooter.read(id);
        const atMs = Date.parse((await parts.snapshots.list()).find((each) => each.id.startsWith(id))?.at ?? '');
        const before = await snapshooter.take('rollback');
        const { save, remove } = planRollback(catalogue.every(), snapshot.nodes, atMs);
        const changed = save.filter((node) => !isSame(node, catalogue.get(node.node_id)));
        await held.save(changed);
        if (remove.length > 0) await held.remove(remove);
        const briefs = await saveBriefs(snapshot.briefs, () => true);
        return { restored: changed.length, removed: remove.length, briefs, undo: before };
      }),
  };

  async function redacted(set: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    const fields = Object.entries(set).map(async ([field, text]) => [field, await redactor.full.text(text)] as const);
    return Object.fromEntries(await Promise.all(fields));
  }

  /** An export of ours was redacted when it was written, but whoever edited it may have typed anything. */
  async function clean(node: MemoryNode): Promise<MemoryNode> {
    const { text } = await redactor.full.json(JSON.stringify(node));
    return JSON.parse(text) as MemoryNode;
  }

  async function cleanBrief(brief: StoredBrief): Promise<StoredBrief> {
    const { text } = await redactor.full.json(JSON.stringify(brief));
    return JSON.parse(text) as StoredBrief;
  }
}

/** An archive can come from anywhere: it raises nobody's origin, nor that of one of its facts, and shows nothing unclean. */
function trusted(node: MemoryNode, known: MemoryNode | undefined): MemoryNode {
  if (known === undefined) return unpinnedWhereUnclean(node);
  const origin = lowestOrigin([node.origin, known.origin]);
  const facts = node.facts.map((fact) => {
    const same = known.facts.find(({ concept, value }) => concept === fact.concept && value === fact.value);
    const highest = same === undefined ? origin : (same.origin ?? known.origin);
    return fact.origin === undefined ? fact : { ...fact, origin: lowestOrigin([fact.origin, highest]) };
  });
  return unpinnedWhereUnclean({ ...node, origin, facts });
}

function unpinnedWhereUnclean(node: MemoryNode): MemoryNode {
  if (isCleanOrigin(node.origin)) return node;
  const { pinned_from: _, pinned_in: __, ...rest } = node;
  return { ...rest, recall_mode: 'active' };
}

function isSame(node: MemoryNode, known: MemoryNode | undefined): boolean {
  return known !== undefined && renderSection(node) === renderSection(known) && node.project === known.project;
}
