import { performance } from 'node:perf_hooks';
import { setTimeout as delay, setImmediate as nextTick } from 'node:timers/promises';

/** Wall time in ms since the epoch. Decisions take a number; only the outermost layer holds a clock. */
export interface Clock {
  now(): number;
}

export const [MINUTE_MS, HOUR_MS, DAY_MS] = [60_000, 3_600_000, 86_400_000] as const;

export const systemClock: Clock = { now: () => Date.now() };

/** Settles like `work`, or rejects as soon as the signal aborts, so that work that ignores the signal delays no caller. */
export function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    const settled = work.then(resolve, reject);
    // What is settled already counts.
    if (signal.aborted) queueMicrotask(stop);
    else signal.addEventListener('abort', stop, { once: true });
    void settled.then(() => signal.removeEventListener('abort', stop));
  });
}

/** Settles like `work`, or rejects with `late` after `timeoutMs`; the work itself continues. */
export async function withTimeout<T>(work: Promise<T>, timeoutMs: number, late: () => Error): Promise<T> {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(late()), timeoutMs);
  try {
    return await beforeAbort(work, over.signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether `work` finishes within `timeoutMs`; otherwise it continues. */
export async function finishesWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const late = new Error('timeout');
  try {
    await withTimeout(work, timeoutMs, () => late);
    return true;
  } catch (error) {
    if (error === late) return false;
    throw error;
  }
}

/** Long synchronous work: at each `yield` the event loop may run. */
export type Steps<T> = Generator<void, T>;

const SLICE_MS = 4;

/** Runs steps, letting the event loop run after every 4 ms of them and before a caller continues after longer ones. */
export async function runInSlices<T>(
  work: Steps<T>,
  { now, pause }: { now(): number; pause(): Promise<unknown> } = { now: () => performance.now(), pause: nextTick },
): Promise<T> {
  for (let since = now(); ; ) {
    const step = work.next();
    if (now() - since >= SLICE_MS) {
      await pause();
      since = now();
    }
    if (step.done === true) return step.value;
  }
}

export function runAtOnce<T>(work: Steps<T>): T {
  let step = work.next();
  while (step.done !== true) step = work.next();
  return step.value;
}

export type Mutex = <T>(task: () => Promise<T>) => Promise<T>;

/** Runs tasks one after the other, in the order of the calls; a failed task stops no other. */
export function createMutex(): Mutex {
  let last: Promise<unknown> = Promise.resolve();
  return (task) => {
    const result = last.then(task);
    // Without its value, which would stay in memory until the next task.
    last = result.then(noop, noop);
    return result;
  };
}

/** One mutex for each key, dropped when it is free. */
export function createKeyedMutex(): <T>(key: string, task: () => Promise<T>) => Promise<T> {
  const mutexes = new Map<string, { readonly lock: ReturnType<typeof createMutex>; tasks: number }>();
  return async (key, task) => {
    const mutex = mutexes.get(key) ?? { lock: createMutex(), tasks: 0 };
    mutexes.set(key, mutex);
    mutex.tasks += 1;
    try {
      return await mutex.lock(task);
    } finally {
      mutex.tasks -= 1;
      if (mutex.tasks === 0) mutexes.delete(key);
    }
  };
}

/** A mutex for tasks whose callers do not handle failures: a failure goes to `onError`. */
export type SerialQueue = (task: () => Promise<void>) => Promise<void>;

export function createSerialQueue(onError: (error: unknown) => void): SerialQueue {
  const lock = createMutex();
  return (task) => lock(task).catch(onError);
}

/** Runs at most `limit` tasks at one time, in the order of the calls. */
export function createSemaphore(limit: number) {
  let free = limit;
  const waiting: (() => void)[] = [];
  const release = (): void => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return {
    /** @throws the signal's reason when it aborts before the task has started */
    async run<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T> {
      signal.throwIfAborted();
      if (free > 0) free -= 1;
      else await acquire(waiting, signal);
      try {
        return await task();
      } finally {
        release();
      }
    },
  };
}

function acquire(waiting: (() => void)[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const enter = (): void => {
      signal.removeEventListener('abort', leave);
      resolve();
    };
    const leave = (): void => {
      waiting.splice(waiting.indexOf(enter), 1);
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', leave, { once: true });
    waiting.push(enter);
  });
}

function noop(): void {}

/** An answer is seldom the last work for a request: background work waits so long after it. */
const QUIET_MS = 20;

/** Background work that lets answers go first. */
export function createPriority(mostMs = 100) {
  let answers = 0;
  let endedMs = Number.NEGATIVE_INFINITY;
  const isQuiet = (): boolean => answers === 0 && performance.now() - endedMs >= QUIET_MS;
  return {
    async answer<T>(work: () => Promise<T>): Promise<T> {
      answers += 1;
      try {
        return await work();
      } finally {
        answers -= 1;
        endedMs = performance.now();
      }
    },
    /** Lets the event loop run, and waits while answers are made, for `mostMs` at most. */
    async rest(): Promise<void> {
      await nextTick();
      const untilMs = performance.now() + mostMs;
      while (!isQuiet() && performance.now() < untilMs) await delay(QUIET_MS);
    },
  };
}

export const BREAKER_FAILURES = 3;
const PROBE_MS = 30_000;

/** Keeps away from what failed several times in a row, and lets one try through now and then. */
export function createBreaker(now: () => number, { failures = BREAKER_FAILURES, probeMs = PROBE_MS } = {}) {
  let inRow = 0;
  let nextTryMs = 0;
  return {
    /** Whether it may be tried now. */
    allows(): boolean {
      if (inRow < failures) return true;
      if (now() < nextTryMs) return false;
      nextTryMs = now() + probeMs;
      return true;
    },
    succeeded(): void {
      inRow = 0;
    },
    /** Whether it has failed too often now. */
    failed(): boolean {
      inRow += 1;
      nextTryMs = now() + probeMs;
      return inRow >= failures;
    },
  };
}
