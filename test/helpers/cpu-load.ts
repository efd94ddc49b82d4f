const WORK_US = 100_000;

/**
 * So many times its processor time a piece of work takes by the clock on this machine just now: 1 where nobody else
 * works. A promise in milliseconds is one for a machine that has the time; here it is that many times as long.
 */
export function busyness(): number {
  const [startedAt, before] = [performance.now(), process.cpuUsage()];
  let usedUs = 0;
  while (usedUs < WORK_US) {
    const { user, system } = process.cpuUsage(before);
    usedUs = user + system;
  }
  return Math.max(1, (1_000 * (performance.now() - startedAt)) / usedUs);
}

/** `busyness` of a span: the larger of its beginning and its end. */
export function startBusyness(): () => number {
  const before = busyness();
  return () => Math.max(before, busyness());
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] as number;
}
