/** Wall time in ms since the epoch. Decisions take a number; only the shell holds a clock. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };
