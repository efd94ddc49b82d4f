import { performance } from 'node:perf_hooks';
import { setImmediate as nextTick } from 'node:timers/promises';

const SLICE_MS = 4;

/** Runs a generator to its end. */
export function runSync<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Runs a generator in time slices, yielding to the event loop between them. */
export async function runInSlices<T>(work: Generator<void, T>): Promise<T> {
  for (let since = performance.now(); ; ) {
    const step = work.next();
    if (step.done === true) return step.value;
    if (performance.now() - since < SLICE_MS) continue;
    await nextTick();
    since = performance.now();
  }
}
