import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { homePaths } from '../../common/paths.ts';
import type { Memory } from '../../memory/index.ts';
import { openLanceIndex } from '../../memory/search/lancedb/search-index.ts';
import type { SearchIndex } from '../../memory/search/search-index.ts';
import { openDreamFiles } from '../../memory/storage/fs/dream-files.ts';
import { openNodeFiles } from '../../memory/storage/fs/node-files.ts';
import { createNodeWatch, type NodeWatch } from '../../memory/storage/fs/node-watch.ts';
import { openPageFiles } from '../../memory/storage/fs/page-files.ts';
import { createIdSetFile } from '../../memory/storage/fs/set-files.ts';
import { openSnapshotFiles } from '../../memory/storage/fs/snapshot-files.ts';
import { openJournal } from '../../memory/storage/fs/turn-log.ts';
import type { NodeFiles } from '../../memory/storage/node-files.ts';
import type { Journal } from '../../memory/storage/turn-log.ts';
import { createHashEmbedder } from './hash-embedder.ts';
import { createDisk, openRig, type RigOptions } from './memory-rig.ts';

export interface DiskRig {
  readonly memory: Memory;
  readonly index: SearchIndex;
  readonly journal: Journal;
  readonly nodeFiles: NodeFiles;
}

/** Memory on real files and a real index below `home`; `watch: null` in `options` keeps it from watching. */
export async function openOnDisk(
  home: string,
  options: RigOptions & { watch?: NodeWatch | null } = {},
): Promise<DiskRig> {
  const paths = homePaths(home);
  const { libraryDir } = paths;
  const report = () => {};
  const embedder = createHashEmbedder();
  const { index } = await openLanceIndex({ dir: paths.indexDir, embedder, now: () => Date.now(), report });
  const journal = await openJournal({ dir: paths.journalDir, report });
  const nodeFiles = await openNodeFiles(paths);
  let made = 0;
  const snapshots = await openSnapshotFiles({
    dir: paths.snapshotsDir,
    most: 20,
    now: () => Date.now(),
    randomHex: () => (made++).toString(16).padStart(6, '0'),
  });
  const memory = await openRig(createDisk(), {
    journal,
    nodeFiles,
    index,
    snapshots,
    dreams: await openDreamFiles(paths.dreamDir),
    pageFiles: await openPageFiles({ dir: libraryDir, ...paths }),
    forgotten: createIdSetFile(path.join(paths.journalDir, 'forgotten')),
    dismissed: createIdSetFile(path.join(paths.journalDir, 'dismissed')),
    watch: createNodeWatch({ ...paths, report }),
    ...options,
  });
  return { memory, index, journal, nodeFiles };
}

export function filesBelow(dir: string): string[] {
  return settled(() =>
    readdirSync(dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.join(entry.parentPath, entry.name))
      .sort(),
  );
}

/** The bytes of every file below `dir`, as latin1. */
export function bytesBelow(dir: string): Map<string, string> {
  return settled(() => new Map(filesBelow(dir).map((file) => [file, readFileSync(file, 'latin1')])));
}

/** Files below `dir` in which `word` stands. */
export function filesHolding(dir: string, word: string): string[] {
  const bytes = Buffer.from(word).toString('latin1');
  // Manifests name files by random hex digits, which may be a number by chance.
  const number = /^\d+$/.test(word) ? new RegExp(`(?<![\\da-f-])${word}(?![\\da-f-])`) : null;
  const holds = (text: string): boolean => number?.test(text) ?? text.includes(bytes);
  return [...bytesBelow(dir)].filter(([, text]) => holds(text)).map(([file]) => file);
}

/** Looks again when a file went away meanwhile: an open index renames and removes files from its own threads. */
function settled<T>(look: () => T, looks = 100): T {
  try {
    return look();
  } catch (error) {
    if (looks === 1 || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return settled(look, looks - 1);
  }
}
