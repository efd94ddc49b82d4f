import { readdirSync } from 'node:fs';
import path from 'node:path';
import { homePaths } from '../../common/paths.ts';
import { openDreamFiles } from '../../memory/adapters/dream-files.ts';
import { createForgottenFile } from '../../memory/adapters/forgotten-file.ts';
import { createHashEmbedder } from '../../memory/adapters/hash-encoder.ts';
import { openJournal } from '../../memory/adapters/journal.ts';
import { openLanceIndex } from '../../memory/adapters/lance-index.ts';
import { openNodeFiles } from '../../memory/adapters/node-files.ts';
import { createNodeWatch } from '../../memory/adapters/node-watch.ts';
import { openSnapshotFiles } from '../../memory/adapters/snapshot-files.ts';
import type { Memory } from '../../memory/index.ts';
import type { Journal } from '../../memory/ports/journal.ts';
import type { NodeFiles, NodeWatch } from '../../memory/ports/node-files.ts';
import type { NodeIndex } from '../../memory/ports/node-index.ts';
import { createDisk, openRig, type RigOptions } from './memory-rig.ts';

export interface DiskRig {
  readonly memory: Memory;
  readonly index: NodeIndex;
  readonly journal: Journal;
  readonly nodeFiles: NodeFiles;
}

/** Memory on real files and a real index below `home`; `watch: null` in `options` keeps it from watching. */
export async function openOnDisk(
  home: string,
  options: RigOptions & { watch?: NodeWatch | null } = {},
): Promise<DiskRig> {
  const paths = homePaths(home);
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
    forgotten: createForgottenFile(path.join(paths.journalDir, 'forgotten')),
    dismissed: createForgottenFile(path.join(paths.journalDir, 'dismissed')),
    watch: createNodeWatch({ ...paths, report }),
    ...options,
  });
  return { memory, index, journal, nodeFiles };
}

export function filesBelow(dir: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort();
}
