/** Keeps away from what failed several times in a row, and lets one try through now and then. */
export interface Breaker {
  /** Whether it may be tried now. */
  allows(): boolean;
  succeeded(): void;
  failed(): void;
}

export const BREAKER_FAILURES = 3;
const PROBE_MS = 30_000;

export function createBreaker(now: () => number, { failures = BREAKER_FAILURES, probeMs = PROBE_MS } = {}): Breaker {
  let inRow = 0;
  let nextTryMs = 0;
  return {
    allows() {
      if (inRow < failures) return true;
      if (now() < nextTryMs) return false;
      nextTryMs = now() + probeMs;
      return true;
    },
    succeeded() {
      inRow = 0;
    },
    failed() {
      inRow += 1;
      nextTryMs = now() + probeMs;
    },
  };
}
