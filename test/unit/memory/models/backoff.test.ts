import { expect, test } from 'vitest';
import { createBackoff } from '../../../../memory/models/backoff.ts';

test('a model that failed is left alone for a minute, then twice as long each time, at most half an hour', () => {
  let nowMs = 0;
  const gate = createBackoff({ now: () => nowMs });
  expect(gate.isOpen()).toBe(true);
  const waits = Array.from({ length: 7 }, () => {
    gate.failed();
    const waitMs = gate.waitMs();
    nowMs += waitMs;
    expect(gate.isOpen()).toBe(true);
    return waitMs / 60_000;
  });
  expect(waits).toEqual([1, 2, 4, 8, 16, 30, 30]);
  gate.succeeded();
  gate.failed();
  expect(gate.waitMs()).toBe(60_000);
});

test('a clock that is set back or forward a year neither shuts the model out nor ends its order', () => {
  let nowMs = 1_800_000_000_000;
  const gate = createBackoff({ now: () => nowMs });
  gate.failed();
  nowMs -= 365 * 86_400_000;
  expect(gate.waitMs()).toBe(60_000);
  nowMs += 60_000;
  expect(gate.isOpen()).toBe(true);
  gate.failed();
  nowMs += 365 * 86_400_000;
  expect(gate.isOpen()).toBe(true);
});
