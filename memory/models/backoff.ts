import type { Clock } from '../../common/async.ts';
import type { QuotaDecision } from './quota.ts';

const FIRST_MS = 60_000;
const LONGEST_MS = 1_800_000;

/**
 * Keeps a model that failed from being asked again at once: one minute, then twice as long each time, at most 30; and
 * any model while the quota says no.
 */
export interface Backoff {
  isOpen(): boolean;
  /** Until it opens; 0 when it is open. */
  waitMs(): number;
  /** Why it is closed, '' when it is open. */
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
    // A clock that was set back must not turn minutes into years.
    if (openAtMs > now + pauseMs) openAtMs = now + pauseMs;
    return Math.max(0, Math.max(openAtMs, quotaMs()) - now);
  };
  return {
    isOpen: () => waitMs() === 0,
    waitMs,
    because() {
      const decision = quota?.decide();
      if (decision?.kind === 'defer') return decision.because;
      return waitMs() === 0 ? '' : 'the model failed and is left alone for a while';
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
