import { expect, test } from 'vitest';
import { createBreaker } from '../../../common/async.ts';

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
