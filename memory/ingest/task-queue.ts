type Work = 'ingest' | 'sensor' | 'compacter' | 'indexer';

/** Counts background tasks and reports when none is left. */
export type TaskQueue = ReturnType<typeof createTaskQueue>;

export function createTaskQueue() {
  const counts: Record<Work, number> = { ingest: 0, sensor: 0, compacter: 0, indexer: 0 };
  let waiting: (() => void)[] = [];
  const busy = (): boolean => Object.values(counts).some((count) => count > 0);
  return {
    async run<T>(kind: Work, work: () => Promise<T>): Promise<T> {
      counts[kind] += 1;
      try {
        return await work();
      } finally {
        counts[kind] -= 1;
        if (!busy()) {
          const woken = waiting;
          waiting = [];
          for (const wake of woken) wake();
        }
      }
    },
    count: (kind: Work): number => counts[kind],
    idle: (): Promise<void> => (busy() ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve()),
  };
}
