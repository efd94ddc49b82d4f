import { existsSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Daemon } from '../latency/daemon.ts';

/** What a process holds, at one moment. */
export interface Reading {
  readonly guardMb: number;
  readonly engineMb: number;
  /** Open descriptors; 0 where the system does not tell. */
  readonly guardFds: number;
  readonly engineFds: number;
  readonly indexMb: number;
}

export async function read(daemon: Daemon, pids: { guard: number; engine: number }): Promise<Reading> {
  const rss = await daemon.rssOf(pids);
  return {
    guardMb: rss.guard,
    engineMb: rss.engine,
    guardFds: await descriptors(pids.guard),
    engineFds: await descriptors(pids.engine),
    indexMb: await mbBelow(path.join(daemon.home, 'index')),
  };
}

/** What is kept on disk, by folder. */
export async function keptMb(home: string): Promise<Readonly<Record<string, number>>> {
  const folders = ['journal', 'memory', 'plans', 'ledger', 'index'];
  const mb = await Promise.all(folders.map((folder) => mbBelow(path.join(home, folder))));
  return Object.fromEntries(folders.map((folder, at) => [folder, mb[at] ?? 0]));
}

async function descriptors(pid: number): Promise<number> {
  const folder = `/proc/${pid}/fd`;
  return existsSync(folder) ? (await readdir(folder)).length : 0;
}

async function mbBelow(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    // A file may go while it is looked at.
    if (entry.isFile())
      bytes += await stat(path.join(entry.parentPath, entry.name)).then(
        ({ size }) => size,
        () => 0,
      );
  }
  return bytes / 2 ** 20;
}
