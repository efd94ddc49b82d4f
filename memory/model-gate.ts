import type { Clock } from '../common/clock.ts';

const FIRST_MS = 60_000;
const LONGEST_MS = 1_800_000;

/** Keeps a model that failed from being asked again at once: one minute, then twice as long each time, at most 30. */
export interface ModelGate {
  isOpen(): boolean;
  /** Until it opens; 0 when it is open. */
  waitMs(): number;
  failed(): void;
  succeeded(): void;
}

export function createModelGate(clock: Clock): ModelGate {
  let pauseMs = 0;
  let openAtMs = 0;
  const waitMs = (): number => Math.max(0, openAtMs - clock.now());
  return {
    isOpen: () => waitMs() === 0,
    waitMs,
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
