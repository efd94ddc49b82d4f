import type { Activity } from '../../memory/index.ts';

/**
 * Each call runs the steps that are due, each once in a pause between requests.
 * @param steps  `afterMs` since the last request
 */
export function createIdleSteps(
  activity: () => Activity,
  now: () => number,
  steps: readonly { readonly afterMs: number; readonly run: () => void }[],
): () => void {
  const pauses = steps.map(() => 0);
  return () => {
    const { answering, lastRequestMs } = activity();
    for (const [at, { afterMs, run }] of steps.entries()) {
      if (answering > 0 || lastRequestMs === pauses[at] || now() - lastRequestMs < afterMs) continue;
      pauses[at] = lastRequestMs;
      run();
    }
  };
}
