import { expect, test } from 'vitest';
import { createIdleSteps } from '../../../../engine/lifecycle/memory.ts';

test('each step runs once in a pause between requests, after its own time, and never during an answer', () => {
  let [nowMs, collections, rests] = [1_800_000_000_000, 0, 0];
  let activity = { answering: 0, lastRequestMs: 0 };
  const collect = (): void => {
    collections += 1;
  };
  const rest = (): void => {
    rests += 1;
  };
  const steps = [
    { afterMs: 60_000, run: collect },
    { afterMs: 900_000, run: rest },
  ];
  const check = createIdleSteps(
    () => activity,
    () => nowMs,
    steps,
  );
  const wait = (ms: number): number => {
    nowMs += ms;
    check();
    return collections;
  };
  expect(wait(600_000)).toBe(0);
  activity = { answering: 1, lastRequestMs: nowMs };
  expect(wait(600_000)).toBe(0);
  activity = { answering: 0, lastRequestMs: nowMs };
  expect([wait(59_000), wait(1_000), wait(600_000)]).toEqual([0, 1, 1]);
  activity = { answering: 0, lastRequestMs: nowMs };
  expect([wait(10_000), wait(60_000)]).toEqual([1, 2]);
  expect(rests).toBe(0);
  expect([wait(900_000), rests]).toEqual([2, 1]);
  expect([wait(900_000), rests]).toEqual([2, 1]);
});
