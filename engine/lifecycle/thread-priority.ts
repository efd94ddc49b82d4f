import { readdirSync } from 'node:fs';
import os from 'node:os';

const GIVES_WAY = 10;

/**
 * Before anything else runs: the threads there are by then compile and collect for the main one, and give way to it
 * where there are more of them than cores. Only Linux has a priority for each thread.
 */
export function favourMainThread(): void {
  if (process.platform !== 'linux') return;
  try {
    for (const name of readdirSync('/proc/self/task')) {
      if (Number(name) !== process.pid) os.setPriority(Number(name), GIVES_WAY);
    }
  } catch {
    // A thread has ended meanwhile, or /proc is closed to us: the engine runs without it.
  }
}
