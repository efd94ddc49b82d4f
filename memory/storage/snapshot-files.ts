import { setImmediate as nextTick } from 'node:timers/promises';
import { z } from 'zod';
import { compareText } from '../../common/text.ts';
import { MemoryNode } from '../model/node-schema.ts';
import { type ArchivedPage, archiveLines, parseArchive, type RemovedNodes, scrubLine } from './archive.ts';
import type { FactFiles } from './fact-files.ts';
import type { PageFiles } from './fs/page-files.ts';
import type { NodeFiles } from './node-files.ts';
import type { NodeRegistry } from './node-registry.ts';
import { PAGE_NAMES, PageRewrite } from './page-files.ts';

export interface SnapshotInfo {
  readonly id: string;
  readonly at: string;
  /** What was about to happen: `edit`, `rm`, `import`, `rollback` or `consolidate`. */
  readonly reason: string;
  readonly bytes: number;
}

/** Nodes as they were and as they are to be; null where there was none, or is to be none. */
const NodeRewrite = z.object({ before: MemoryNode.nullable(), after: MemoryNode.nullable() });
export type NodeRewrite = z.infer<typeof NodeRewrite>;

/** Digests of nodes by id. */
export const Digests = z.record(z.string(), z.string());
const count = z.int().nonnegative();

/** What passes did since the last brief, for the next one. No texts: those of a memory that is removed would stay. */
const Untold = z.object({
  ...{ merged: count, groups: count, tags: count, linked: count, pruned: count, added: count },
  /** Names of topic pages that changed. */
  pages: z.array(z.string()),
  /** Ids of page statements that no longer hold. */
  past: z.array(z.string()),
});
export type Untold = z.infer<typeof Untold>;

/** A section of an inbox page; `since` is what it told from, and `digest` that of its text. */
const BriefRecord = z.object({
  at: z.iso.datetime(),
  snapshot: z.string().nullable(),
  day: z.string(),
  since: z.iso.datetime().nullable(),
  digest: z.string(),
});
export type BriefRecord = z.infer<typeof BriefRecord>;

/** What the last dream did, in numbers, and what it looked at. */
export const DreamLedger = z.object({
  at: z.iso.datetime(),
  snapshot: z.string().nullable(),
  ...{ merged: count, groups: count, tags: count, linked: count, pruned: count },
  /** Nodes that the next one looks at. */
  left: count,
  /** Digest of each node as it was looked at. */
  seen: Digests,
  untold: Untold.optional(),
  /** Until when briefs tell what happened. */
  told: z.iso.datetime().nullish(),
  /** When the last pass of all phases ended well. */
  full: z.iso.datetime().optional(),
  /** Newest first. */
  briefs: z.array(BriefRecord).optional(),
  /** Day of the newest brief that a session was told of. */
  shown: z.string().optional(),
  /** See `MergeWriter.refusals`. */
  refused: z.array(z.string()).optional(),
});
export type DreamLedger = z.infer<typeof DreamLedger>;

/** A change of many files that happens as a whole or not at all; `snapshot` was taken before it. */
export const ChangeRecord = z.object({
  snapshot: z.string(),
  changes: z.array(NodeRewrite).readonly(),
  pages: z.array(PageRewrite).readonly().optional(),
  /** State of the last dream before this one; absent where the change is none of a dream. */
  former: DreamLedger.nullish(),
});
export type ChangeRecord = Readonly<z.infer<typeof ChangeRecord>>;

export interface DreamFiles {
  /** Durable when it resolves: from now on the change is undone at the next start. `digests` of what it writes, by id. */
  begin(record: ChangeRecord, digests: Readonly<Record<string, string>>): Promise<void>;
  /** Durable when it resolves: the change stands, or is undone. */
  end(): Promise<void>;
  /** A change that was begun and not ended. */
  pending(): Promise<ChangeRecord | null>;
  /** Digests of what the last change wrote. */
  lastDigests(): Promise<ReadonlyMap<string, string>>;
  load(): Promise<DreamLedger | null>;
  /** `nowMs` of the first call in this home. */
  firstMs(nowMs: number): Promise<number>;
  /** Null: as if there had been none. */
  save(ledger: DreamLedger | null): Promise<void>;
}

/** Memory as it stood before a change, a bounded number of times. */
export interface Snapshots {
  /** Newest first. */
  list(): Promise<readonly SnapshotInfo[]>;
  write(reason: string, text: string): Promise<SnapshotInfo>;
  /** @throws CometError `not_found` */
  read(id: string): Promise<string>;
  /** Passes each through `change`; what comes back takes its place, and nothing of what was there stays. */
  rewrite(change: (text: string) => string | Promise<string>): Promise<void>;
}

/** Memory as it was before a change. Raw turns are in no snapshot: the journal has them. */
export type SnapshotService = ReturnType<typeof createSnapshotService>;

type Parts = {
  readonly nodeFiles: NodeFiles;
  readonly snapshots: Snapshots;
  readonly catalogue: NodeRegistry;
  readonly pageFiles: Pick<PageFiles, 'load'>;
  readonly factFiles: Pick<FactFiles, 'texts'>;
};

/** Yields the thread to other work. */
const LINES_AT_ONCE = 100;

export function createSnapshotService(parts: Parts) {
  const { nodeFiles, snapshots, catalogue } = parts;
  return {
    async take(reason: 'edit' | 'rm' | 'import' | 'rollback' | 'consolidate'): Promise<string> {
      const files = await archivedFiles(parts);
      const archive = { nodes: catalogue.every(), briefs: await nodeFiles.briefs(), ...files };
      const text = (await inPieces(archiveLines(archive), (line) => line)).join('');
      return (await snapshots.write(reason, text)).id;
    },
    read: async (id: string) => parseArchive(await snapshots.read(id)),
    /** What `find` finds in each snapshot, newest first; '' for nothing. */
    async trace(find: (text: string) => string) {
      const versions: { readonly at: string; readonly reason: string; readonly line: string }[] = [];
      for (const { id, at, reason } of await snapshots.list()) {
        const line = find(await snapshots.read(id).catch(() => ''));
        if (line !== '') versions.push({ at, reason, line });
      }
      return versions;
    },
    /** What is removed for good is removed from the past too; `isLive` spares nodes that only share a turn with it. */
    scrub(ids: ReadonlySet<string>, turnIds: ReadonlySet<string>, isLive: (id: string) => boolean): Promise<void> {
      const removal: RemovedNodes = {
        ids,
        turnIds,
        isGone: ({ node_id, turns }) =>
          ids.has(node_id) || (turns.some((turnId) => turnIds.has(turnId)) && !isLive(node_id)),
      };
      return snapshots.rewrite(async (text) => {
        const lines = await inPieces(text.split('\n'), (line) => scrubLine(line, removal));
        return lines.flatMap((line) => (line === '' ? [] : [`${line}\n`])).join('');
      });
    },
  };
}

/** Topic pages with what was placed in them, and files of facts. */
export async function archivedFiles({ pageFiles, factFiles }: Pick<Parts, 'pageFiles' | 'factFiles'>) {
  const { texts } = await pageFiles.load();
  const pages = [...texts].filter(([name]) => /^topics\/.+\.md$/.test(name) || name === PAGE_NAMES.state);
  const ordered = (files: Iterable<readonly [string, string]>): ArchivedPage[] =>
    [...files].map(([name, text]) => ({ name, text })).sort((a, b) => compareText(a.name, b.name));
  return { pages: ordered(pages), facts: ordered(await factFiles.texts()) };
}

async function inPieces(lines: Iterable<string>, change: (line: string) => string): Promise<string[]> {
  const changed: string[] = [];
  for (const line of lines) {
    changed.push(change(line));
    if (changed.length % LINES_AT_ONCE === 0) await nextTick();
  }
  return changed;
}
