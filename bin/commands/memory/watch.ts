import { setTimeout as after } from 'node:timers/promises';
import { type EngineStatus, getEngine } from '../../../engine/api/index.ts';
import type { Context } from '../../context.ts';

const LOOK_MS = 300;

/** Runs `work` while a line of the terminal shows what `said` returns, but for '' and with `--json`. */
export async function watched<T>(
  context: Context,
  { json }: { readonly json?: boolean },
  getProgress: (status: EngineStatus) => string,
  work: () => Promise<T>,
): Promise<T> {
  if (json) return await work();
  const over = new AbortController();
  const watching = look(context, getProgress, over.signal);
  try {
    return await work();
  } finally {
    over.abort();
    await watching;
  }
}

async function look(context: Context, getProgress: (status: EngineStatus) => string, signal: AbortSignal) {
  const client = getEngine(context.paths);
  while (!signal.aborted) {
    await after(LOOK_MS, undefined, { signal }).catch(() => undefined);
    const status = signal.aborted ? null : await client.call('status', {}).catch(() => null);
    const text = status === null ? '' : getProgress(status);
    if (text !== '') context.term.progress(text);
  }
}
