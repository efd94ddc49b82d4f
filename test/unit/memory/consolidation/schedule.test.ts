import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { noQuota } from '../../../../bench/no-files.ts';
import { Config } from '../../../../common/config.ts';
import { silentLog } from '../../../../common/log.ts';
import type { ConsolidationRequest } from '../../../../memory/consolidation/consolidation.ts';
import { createSchedule } from '../../../../memory/consolidation/schedule.ts';

const MINUTE = 60_000;
/** Local time, as `dream.at` is. */
const at = (day: number, hour: number, minute = 0): number => new Date(2026, 10, day, hour, minute).getTime();

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

interface Options {
  readonly dream?: Partial<Config['dream']>;
  readonly llm?: Config['llm'];
  /** When the last pass ended well. */
  readonly fullMs?: number;
  readonly fails?: boolean;
  readonly ready?: Promise<void>;
}

/** A machine that was set up on the 20th. */
function open(
  nowMs: number,
  { dream = {}, llm = 'local', fullMs, fails = false, ready = Promise.resolve() }: Options = {},
) {
  const clock = { nowMs };
  const passes: ConsolidationRequest[] = [];
  let lastMs = fullMs ?? null;
  const schedule = createSchedule({
    config: { ...Config.parse({ llm }), dream: { ...Config.parse({}).dream, ...dream } },
    clock: { now: () => clock.nowMs },
    model: null,
    quota: noQuota,
    dreams: {
      lastFullMs: () => lastMs,
      run: async (request) => {
        passes.push(request);
        if (fails) throw new Error('no space left');
        if (request.noBrief !== true) lastMs = clock.nowMs;
        return { left: 0 } as never;
      },
    },
    sinceMs: at(20, 12),
    ready,
    log: silentLog,
  });
  return {
    schedule,
    clock,
    passes,
    /** Sets the clock and lets the next look happen. */
    async to(ms: number): Promise<void> {
      clock.nowMs = ms;
      vi.advanceTimersByTime(MINUTE);
      await settled();
    },
  };
}

/** Loading the parsers takes some turns of the real event loop. */
async function settled(): Promise<void> {
  await import('croner');
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test('runs once a night', async () => {
  const { passes, to, schedule } = open(at(22, 20));
  await to(at(23, 2, 59));
  expect(passes).toHaveLength(1);
  for (const time of [at(23, 3), at(23, 3, 1), at(23, 12), at(24, 2, 59)]) await to(time);
  expect(passes).toHaveLength(2);
  await to(at(24, 3));
  expect(passes).toEqual(Array(3).fill({ dryRun: false }));
  await schedule.close();
});

test('makes three missed nights one pass at the next start, and none where no night was missed', async () => {
  const missed = open(at(24, 9), { fullMs: at(21, 3) });
  await settled();
  expect(missed.passes).toHaveLength(1);
  await missed.to(at(24, 9, 5));
  expect(missed.passes).toHaveLength(1);
  await missed.schedule.close();
  const fresh = open(at(20, 18));
  await fresh.to(at(20, 23));
  const done = open(at(24, 9), { fullMs: at(24, 3) });
  await settled();
  expect([fresh.passes, done.passes]).toEqual([[], []]);
  for (const { schedule } of [fresh, done]) await schedule.close();
});

test('is not repeated by a clock that jumps back over it, and not stopped by one that was far ahead', async () => {
  const { passes, to, schedule } = open(at(24, 2, 59), { fullMs: at(23, 3) });
  await to(at(24, 3));
  for (const time of [at(24, 2), at(24, 2, 59), at(24, 3), at(24, 3, 1), at(23, 4)]) await to(time);
  expect(passes).toHaveLength(1);
  await to(at(25, 3));
  expect(passes).toHaveLength(2);
  await schedule.close();
  const ahead = open(at(24, 2, 59), { fullMs: at(30, 3) });
  await ahead.to(at(24, 3));
  expect(ahead.passes.length).toBe(1);
  await ahead.schedule.close();
});

test('gives way to requests, and waits an hour after a failure', async () => {
  const { passes, to, schedule, clock } = open(at(24, 2, 58), { fullMs: at(23, 3) });
  clock.nowMs = at(24, 2, 59);
  schedule.reset();
  await to(at(24, 3));
  expect(passes).toEqual([]);
  await to(at(24, 3, 2));
  expect(passes).toHaveLength(1);
  await schedule.close();
  const failing = open(at(24, 3), { fullMs: at(23, 3), fails: true });
  await settled();
  await failing.to(at(24, 3, 30));
  expect(failing.passes).toHaveLength(1);
  expect(failing.schedule.problems()[0]?.message).toBe('the nightly pass failed: no space left');
  await failing.to(at(24, 4, 1));
  expect(failing.passes).toHaveLength(2);
  await failing.schedule.close();
});

test('is off with an empty dream.at, and where no model may write', async () => {
  for (const options of [{ dream: { at: '' } }, { llm: 'off' }] as const) {
    const { passes, to, schedule } = open(at(24, 9), options);
    await to(at(25, 9));
    expect(passes).toEqual([]);
    await schedule.close();
  }
});

test('lets a session wait for the pass of a missed night, and for no other', async () => {
  const missed = open(at(24, 9), { fullMs: at(21, 3) });
  await missed.schedule.caughtUp();
  expect(missed.passes).toHaveLength(1);
  await missed.schedule.close();
  const fresh = open(at(24, 9), { ready: new Promise(() => {}) });
  await fresh.schedule.caughtUp();
});

test('says what is wrong with a dream.at that names no time', async () => {
  const { schedule, passes } = open(at(24, 9), { dream: { at: '99 3 * * *' } });
  await settled();
  expect(schedule.problems()[0]?.message).toMatch(/^the nightly pass failed: dream\.at: .*99 3/);
  expect(passes).toEqual([]);
  await schedule.close();
});

test('leaves the brief of an idle pass to the night', async () => {
  const { passes, schedule } = open(at(20, 18), { dream: { idleMinutes: 30 } });
  await settled();
  vi.advanceTimersByTime(30 * MINUTE);
  await settled();
  expect(passes).toEqual([{ dryRun: false, noBrief: true }]);
  await schedule.close();
});
