import type { Memory } from '../../memory/index.ts';
import { openDreamFiles } from '../../memory/storage/fs/dream-files.ts';
import { openNodeFiles } from '../../memory/storage/fs/node-files.ts';
import { openPageFiles } from '../../memory/storage/fs/page-files.ts';
import { openSnapshotFiles } from '../../memory/storage/fs/snapshot-files.ts';
import { createDisk, openRig } from './memory-rig.ts';

/** Memory on the node files, snapshots and dream files of a home; the same ids and times in each run. */
export async function openDreamRig(home: string): Promise<Memory> {
  let drawn = 0;
  const randomHex = (): string => {
    drawn += 1;
    return (drawn - 1).toString(16).padStart(6, '0');
  };
  const now = (): number => Date.parse('2026-11-22T03:00:00.000Z');
  const memory = await openRig(createDisk(), {
    llm: 'local',
    randomHex,
    clock: { now },
    nodeFiles: await openNodeFiles({ nodesDir: `${home}/memory/nodes`, briefsDir: `${home}/memory/briefs` }),
    dreams: await openDreamFiles(`${home}/memory/dream`),
    pageFiles: await openPageFiles({ dir: `${home}/library`, nodesDir: `${home}/memory/nodes` }),
    snapshots: await openSnapshotFiles({ dir: `${home}/memory/snapshots`, most: 20, now, randomHex }),
  });
  await memory.maintenance.flush(30_000);
  return memory;
}
