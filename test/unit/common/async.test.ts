import { expect, test } from 'vitest';
import { createBreaker, createPriority, runAtOnce, runInSlices, type Steps } from '../../../common/async.ts';

test('long work lets the event loop run after each 4 ms and before its caller continues, with the same result', async () => {
  let now = 0;
  const pauses: number[] = [];
  const slicing = { now: () => now, pause: async () => void pauses.push(now) };
  function* work(costs: readonly number[]): Steps<number> {
    for (const cost of costs) {
      now += cost;
      yield;
    }
    now += 5;
    return costs.length;
  }
  expect(await runInSlices(work([1, 1, 1, 1, 9, 1, 3]), slicing)).toBe(7);
  expect(pauses).toEqual([4, 13, 17, 22]);
  expect(runAtOnce(work([1, 9]))).toBe(2);
  expect(pauses).toHaveLength(4);
});

test('after three failures in a row nothing passes but one try now and then, until one succeeds', () => {
  let now = 0;
  const breaker = createBreaker(() => now, { failures: 3, probeMs: 100 });
  for (let at = 0; at < 3; at += 1) {
    expect(breaker.allows()).toBe(true);
    breaker.failed();
  }
  expect(breaker.allows()).toBe(false);
  now = 100;
  expect([breaker.allows(), breaker.allows()]).toEqual([true, false]);
  breaker.succeeded();
  expect(breaker.allows()).toBe(true);
});

test('a success in between restarts the count', () => {
  const breaker = createBreaker(() => 0);
  for (let at = 0; at < 5; at += 1) {
    breaker.failed();
    breaker.failed();
    breaker.succeeded();
  }
  expect(breaker.allows()).toBe(true);
});

test('background work waits while answers are made, and not for ever', async () => {
  const priority = createPriority(20);
  const order: string[] = [];
  let end: () => void = () => {};
  const answer = priority.answer(() => new Promise<void>((resolve) => (end = resolve)));
  const rested = createPriority(60_000);
  const failing = rested.answer(async () => {
    await new Promise(setImmediate);
    order.push('answered');
    throw new Error('no index');
  });
  const rest = rested.rest().then(() => order.push('rested'));
  await expect(failing).rejects.toThrow('no index');
  await rest;
  expect(order).toEqual(['answered', 'rested']);
  await priority.rest();
  end();
  await answer;
  await priority.rest();
});
