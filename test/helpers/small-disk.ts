import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

export interface SmallDisk {
  readonly dir: string;
  /** Takes all room that is left; the result gives it back. */
  fill(): () => void;
  readOnly(isReadOnly: boolean): void;
  close(): void;
}

const run = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0;

/** A disk of its own for a home, which needs root; null where it cannot be had. */
export function mountSmallDisk(megabytes: number): SmallDisk | null {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'cc-d-'));
  if (!run('mount', '-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700`, 'tmpfs', dir)) {
    rmdirSync(dir);
    return null;
  }
  const filler = path.join(dir, 'filler');
  function cover(): boolean {
    const copy = mkdtempSync(path.join(os.tmpdir(), 'cc-d-ro-'));
    try {
      if (!run('mount', '--bind', dir, copy)) return false;
      const isCovered = run('mount', '-o', 'remount,bind,ro', copy) && run('mount', '--bind', copy, dir);
      return run('umount', copy) && isCovered;
    } finally {
      rmdirSync(copy);
    }
  }
  return {
    dir,
    fill() {
      for (const bytes of [65_536, 512, 1]) {
        try {
          for (;;) appendFileSync(filler, Buffer.alloc(bytes));
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        }
      }
      return () => rmSync(filler, { force: true });
    },
    readOnly(isReadOnly) {
      // A mount with a file open for writing cannot become read-only, so one that has none yet is laid over it.
      const done = isReadOnly ? cover() : run('umount', '-l', dir);
      if (!done) throw new Error(`${dir}: not remounted`);
    },
    close() {
      while (run('umount', '-l', dir));
      rmdirSync(dir);
    },
  };
}

/** Whether the limits of another process can be set from here. */
export const CAN_LIMIT = run('prlimit', '--version');

/** Sets a soft limit of a running process, as `ulimit` would have before its start. */
export function limit(pid: number, what: 'fsize' | 'nofile', value: number | 'unlimited'): void {
  if (!run('prlimit', '--pid', String(pid), `--${what}=${value}:`)) throw new Error(`no limit ${what} for ${pid}`);
}
