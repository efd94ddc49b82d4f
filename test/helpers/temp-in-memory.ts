import { readFileSync, statfsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'vitest';

/** Storage, its faults and kills are tried on the disk of this machine. */
const ON_DISK = /^test\/(?:faults|(?:unit|integration)\/memory\/storage)\/|\/(?:bad-disk|kill)\.test\.ts$/;
const SHM = '/dev/shm';
const GB = 2 ** 30;

/** Whether it has room, and programs in it can be started. */
function isFit(): boolean {
  try {
    const { bavail, bsize } = statfsSync(SHM);
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .find((line) => line.startsWith(`tmpfs ${SHM} `));
    const hasRoom = Math.min(bavail * bsize, os.freemem()) > 4 * GB;
    return hasRoom && mount !== undefined && !mount.includes('noexec');
  } catch {
    return false;
  }
}

// Homes of tests in memory take a seventh of the processor time off. A worker takes files of both kinds.
const file = path.relative(path.join(import.meta.dirname, '..', '..'), expect.getState().testPath ?? '');
if (process.env['TMPDIR'] === SHM) delete process.env['TMPDIR'];
if (process.env['TMPDIR'] === undefined && file !== '' && !ON_DISK.test(file) && isFit()) process.env['TMPDIR'] = SHM;
