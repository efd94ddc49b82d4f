import type { Clock } from '../../common/async.ts';
import type { QuotaDecision } from './quota.ts';

const FIRST_MS = 60_000;
const LONGEST_MS = 1_800_000;

/**
 * Closed after a failure for one minute, doubled for each further failure up to 30 minutes, and while the quota defers.
 */
export interface Backoff {
  isOpen(): boolean;
  /** 0 when it is open. */
  waitMs(): number;
  /** '' when it is open. */
  because(): string;
  failed(): void;
  succeeded(): void;
}

export function createBackoff(clock: Clock, quota?: { decide(): QuotaDecision }): Backoff {
  let pauseMs = 0;
  let openAtMs = 0;
  const quotaMs = (decision = quota?.decide()): number => (decision?.kind === 'defer' ? decision.untilMs : 0);
  const waitMs = (): number => {
    const now = clock.now();
    // If the clock was set back, wait no longer than the pause itself.
    if (openAtMs > now + pauseMs) openAtMs = now + pauseMs;
    return Math.max(0, Math.max(openAtMs, quotaMs()) - now);
  };
  return {
    isOpen: () => waitMs() === 0,
    waitMs,
    because() {
      const decision = quota?.decide();
      if (decision?.kind === 'defer') return decision.because;
      return waitMs() === 0 ? '' : 'the model failed; waiting before the next attempt';
    },
    failed() {
      pauseMs = pauseMs === 0 ? FIRST_MS : Math.min(LONGEST_MS, pauseMs * 2);
      openAtMs = clock.now() + pauseMs;
    },
    succeeded() {
      pauseMs = 0;
      openAtMs = 0;
    },
  };
}
