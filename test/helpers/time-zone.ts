import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmdirSync, rmSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** Mounts that no other process sees. */
const PRIVATE = ['--mount', '--propagation', 'private'];

/** Whether a process can have a view of `/etc` of its own, which needs root on Linux. */
export const CAN_MOVE = process.platform === 'linux' && spawnSync('unshare', [...PRIVATE, 'true']).status === 0;

export interface MovingMachine {
  /** Starts a program that, with its children, takes `zone` for the time zone of this machine. */
  spawn(command: readonly string[], env: NodeJS.ProcessEnv): ChildProcess;
  moveTo(zone: string): void;
  close(): void;
}

/** A machine in `zone`; `/etc` itself stays as it is, and is seen through links from another place. */
export function createMovingMachine(zone: string): MovingMachine {
  const root = mkdtempSync(path.join(os.tmpdir(), 'cc-zone-'));
  const [own, real] = [path.join(root, 'etc'), path.join(root, 'real')];
  for (const dir of [own, real]) mkdirSync(dir);
  for (const name of readdirSync('/etc')) {
    if (name !== 'localtime') symlinkSync(path.join(real, name), path.join(own, name));
  }
  const moveTo = (to: string): void => {
    symlinkSync(`/usr/share/zoneinfo/${to}`, path.join(root, 'next'));
    renameSync(path.join(root, 'next'), path.join(own, 'localtime'));
  };
  moveTo(zone);
  const mount = `mount --bind /etc ${real} && mount --bind ${own} /etc && exec "$@"`;
  return {
    moveTo,
    spawn: ([file = '', ...args], env) =>
      spawn('unshare', [...PRIVATE, 'sh', '-c', mount, 'sh', file, ...args], { env }),
    close() {
      // Only an empty folder: nothing below a mount is ever removed.
      rmdirSync(real);
      rmSync(root, { recursive: true });
    },
  };
}
