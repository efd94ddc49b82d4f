import { readdirSync } from 'node:fs';
import os from 'node:os';
import type { EngineOptions, RunningEngine } from './compose.ts';

export type { RunningEngine } from './compose.ts';
export { OPENING, STORE } from './deferred.ts';
export { retryStore, watchBuild } from './lifecycle/build.ts';

/** Loads the engine on first use: the process lowers the priority of its threads before. */
export async function composeEngine(options: EngineOptions): Promise<RunningEngine> {
  return (await import('./compose.ts')).composeEngine(options);
}

export async function reviveGuard(env: NodeJS.ProcessEnv): Promise<void> {
  (await import('./lifecycle/daemon.ts')).reviveGuard(env, Date.now());
}

const WORKER_PRIORITY = 10;

/**
 * Called before anything else runs, when the other threads only compile and collect for the main one: they yield to it
 * where cores are few. Only Linux has a priority for each thread.
 */
export function lowerWorkerPriority(): void {
  if (process.platform !== 'linux') return;
  try {
    for (const name of readdirSync('/proc/self/task')) {
      if (Number(name) !== process.pid) os.setPriority(Number(name), WORKER_PRIORITY);
    }
  } catch {
    // A thread ended meanwhile, or /proc is not readable: the engine runs without it.
  }
}
