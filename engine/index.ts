import type { EngineOptions, RunningEngine } from './compose.ts';

export type { RunningEngine } from './compose.ts';
export { STORE } from './deferred.ts';
export { lowerWorkerPriority } from './lifecycle/thread-priority.ts';

/** Loads the engine on first use: the process lowers the priority of its threads before. */
export async function composeEngine(options: EngineOptions): Promise<RunningEngine> {
  const engine = await import('./compose.ts');
  return engine.composeEngine(options);
}
