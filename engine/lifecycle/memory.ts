import type { Activity } from '../../memory/index.ts';

export interface IdleCollectorOptions {
  readonly activity: () => Activity;
  readonly now: () => number;
  readonly collect: () => void;
}

/** After such a pause the next prompt seldom comes within the tenth of a second that a collection takes. */
const IDLE_MS = 60_000;

/**
 * Collects garbage once after each pause between requests: V8 does so only while a program allocates, and keeps what a
 * busy hour took.
 */
export function createIdleCollector({ activity, now, collect }: IdleCollectorOptions): () => void {
  let collectedMs = 0;
  return () => {
    const { answering, lastRequestMs } = activity();
    if (answering > 0 || lastRequestMs === collectedMs || now() - lastRequestMs < IDLE_MS) return;
    collectedMs = lastRequestMs;
    collect();
  };
}
