import { expect, test } from 'vitest';
import { createIdleCollector } from '../../../../engine/lifecycle/memory.ts';

test('garbage is collected once after each pause between requests, and never during an answer', () => {
  let [nowMs, collections] = [1_800_000_000_000, 0];
  let activity = { answering: 0, lastRequestMs: 0 };
  const collect = (): void => {
    collections += 1;
  };
  const check = createIdleCollector({ activity: () => activity, now: () => nowMs, collect });
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
});
