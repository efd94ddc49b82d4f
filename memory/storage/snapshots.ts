import { setImmediate as nextTick } from 'node:timers/promises';
import { type Archive, archiveLines, type Gone, parseArchive, scrubLine } from './archive.ts';
import type { NodeFiles } from './node-files.ts';
import type { NodeRegistry } from './node-registry.ts';
import type { Snapshots } from './snapshot-files.ts';

/** Memory as it was before a change. Raw turns are in no snapshot: the journal has them. */
export interface SnapshotService {
  take(reason: 'edit' | 'rm' | 'import' | 'rollback' | 'consolidate'): Promise<string>;
  read(id: string): Promise<Archive>;
  /** What is removed for good is removed from the past too; `isLive` spares nodes that only share a turn with it. */
  scrub(ids: ReadonlySet<string>, turnIds: ReadonlySet<string>, isLive: (id: string) => boolean): Promise<void>;
}

type Parts = {
  readonly nodeFiles: NodeFiles;
  readonly snapshots: Snapshots;
  readonly catalogue: NodeRegistry;
};

/** Yields the thread to other work. */
const LINES_AT_ONCE = 100;

export function createSnapshotService({ nodeFiles, snapshots, catalogue }: Parts): SnapshotService {
  return {
    async take(reason) {
      const archive = { nodes: catalogue.every(), briefs: await nodeFiles.briefs() };
      const text = (await inPieces(archiveLines(archive), (line) => line)).join('');
      return (await snapshots.write(reason, text)).id;
    },
    read: async (id) => parseArchive(await snapshots.read(id)),
    scrub(ids, turnIds, isLive) {
      const gone: Gone = {
        ids,
        turnIds,
        isGone: ({ node_id, turns }) =>
          ids.has(node_id) || (turns.some((turnId) => turnIds.has(turnId)) && !isLive(node_id)),
      };
      return snapshots.rewrite(async (text) => {
        const lines = await inPieces(text.split('\n'), (line) => scrubLine(line, gone));
        return lines.flatMap((line) => (line === '' ? [] : [`${line}\n`])).join('');
      });
    },
  };
}

async function inPieces(lines: Iterable<string>, change: (line: string) => string): Promise<string[]> {
  const changed: string[] = [];
  for (const line of lines) {
    changed.push(change(line));
    if (changed.length % LINES_AT_ONCE === 0) await nextTick();
  }
  return changed;
}
