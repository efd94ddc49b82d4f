import { existsSync } from 'node:fs';
import { readdir, readlink, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Daemon } from '../latency/daemon.ts';

/** What a process holds, at one moment. */
export interface Reading {
  readonly guardMb: number;
  readonly engineMb: number;
  /** Open descriptors; 0 where the system does not tell. */
  readonly guardFds: number;
  /** Without index files. */
  readonly engineFds: number;
  /** Index files that LanceDB's caches hold open until the tables are reopened. */
  readonly indexFds: number;
  readonly indexMb: number;
}

export async function read(daemon: Daemon, pids: { guard: number; engine: number }): Promise<Reading> {
  const rss = await daemon.getRss(pids);
  const engineFds = await descriptors(pids.engine);
  return {
    guardMb: rss.guard,
    engineMb: rss.engine,
    guardFds: (await descriptors(pids.guard)).length,
    engineFds: engineFds.filter((target) => !target.includes('/index/')).length,
    indexFds: engineFds.filter((target) => target.includes('/index/')).length,
    indexMb: await mbBelow(path.join(daemon.home, 'index')),
  };
}

/** What is kept on disk, by folder. */
export async function keptMb(home: string): Promise<Readonly<Record<string, number>>> {
  const folders = ['journal', 'memory', 'plans', 'ledger', 'index'];
  const mb = await Promise.all(folders.map((folder) => mbBelow(path.join(home, folder))));
  return Object.fromEntries(folders.map((folder, at) => [folder, mb[at] ?? 0]));
}

/** The targets of the open descriptors. */
async function descriptors(pid: number): Promise<string[]> {
  const folder = `/proc/${pid}/fd`;
  if (!existsSync(folder)) return [];
  const links = await readdir(folder);
  return Promise.all(links.map((link) => readlink(path.join(folder, link)).catch(() => '')));
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
