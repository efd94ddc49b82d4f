/** At most `places` at one time, in order of arrival. */
export interface Semaphore {
  /** @throws the signal's reason when it aborts before the turn came */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

export function createSemaphore(places: number): Semaphore {
  let free = places;
  const waiting: (() => void)[] = [];
  const release = (): void => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return {
    async run(work, signal) {
      signal.throwIfAborted();
      if (free > 0) free -= 1;
      else await turnCame(waiting, signal);
      try {
        return await work();
      } finally {
        release();
      }
    },
  };
}

function turnCame(waiting: (() => void)[], signal: AbortSignal): Promise<void> {
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
