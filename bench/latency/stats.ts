export interface Spread {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** Nearest rank; milliseconds in, milliseconds out. */
export function spread(samples: readonly number[]): Spread {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

/** How much later each rank of `samples` is than the same rank of `base`. */
export function added(samples: readonly number[], base: readonly number[]): Spread {
  const [a, b] = [spread(samples), spread(base)];
  return { p50: a.p50 - b.p50, p95: a.p95 - b.p95, p99: a.p99 - b.p99 };
}

export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
