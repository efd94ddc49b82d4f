import { setImmediate as nextTick } from 'node:timers/promises';
import { compareText } from '../../common/text.ts';
import { type ArchivedPage, archiveLines, parseArchive, type RemovedNodes, scrubLine } from './archive.ts';
import type { FactFiles } from './fact-files.ts';
import type { PageFiles } from './fs/page-files.ts';
import type { Snapshots } from './fs/snapshot-files.ts';
import type { NodeFiles } from './node-files.ts';
import type { NodeRegistry } from './node-registry.ts';
import { PAGE_NAMES } from './page-files.ts';

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
