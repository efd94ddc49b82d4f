import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseTask, type Task } from '../../../../memory/model/task.ts';
import {
  dueTime,
  isReminder,
  localIso,
  nextTime,
  readReminder,
  readTrigger,
  scheduledMs,
  type Trigger,
} from '../../../../memory/tasks/trigger.ts';
import { createMemoryTaskFiles } from '../../../helpers/memory-task-files.ts';
import { openTaskRig } from '../../../helpers/task-rig.ts';

const zone = process.env['TZ'];
const ZONES = ['UTC', 'Europe/Vienna', 'America/New_York', 'Asia/Kolkata', 'Australia/Lord_Howe', 'Pacific/Apia'];

afterEach(() => {
  if (zone === undefined) delete process.env['TZ'];
  else process.env['TZ'] = zone;
});

const getLocal = (trigger: Trigger | string): string =>
  typeof trigger === 'string' ? trigger : trigger.kind === 'cron' ? trigger.form : localIso(trigger.atMs).slice(0, 16);

describe.each(ZONES)('in %s', (name) => {
  beforeEach(() => {
    process.env['TZ'] = name;
  });
  const monday = (): number => new Date(2026, 10, 23, 11, 30).getTime();

  test.each([
    ['now', '2026-11-23T11:30'],
    ['tomorrow 9:00', '2026-11-24T09:00'],
    ['tomorrow', '2026-11-24T09:00'],
    ['friday', '2026-11-27T09:00'],
    ['next monday at 14:00', '2026-11-30T14:00'],
    ['in 20 minutes', '2026-11-23T11:50'],
    ['2026-12-01', '2026-12-01T09:00'],
    ['2026-12-01 14:30', '2026-12-01T14:30'],
    ['tonight', '2026-11-23T22:00'],
    ['0 9 * * 1-5', '0 9 * * 1-5'],
    ['@daily', '@daily'],
    ['every day', '0 9 * * *'],
    ['Every Monday at 14:30', '30 14 * * 1'],
    ['each weekday at 8 pm', '0 20 * * 1-5'],
    ['every Sunday at 12am', '0 0 * * 0'],
  ])('%j is %s', async (text, expected) => {
    expect(getLocal(await readTrigger(text, monday()))).toBe(expected);
  });

  test.each([
    ['in one month', '2026-02-28T09:00'],
    ['next month at 14:00', '2026-02-28T14:00'],
    ['in 3 months', '2026-04-30T09:00'],
    ['in 2 months', '2026-03-31T09:00'],
    ['february', '2026-02-01T09:00'],
  ])('on 31 January %j is %s', async (text, expected) => {
    const trigger = await readTrigger(text, new Date(2026, 0, 31, 11, 30).getTime());
    expect(getLocal(trigger)).toBe(expected);
  });

  test('a day without a time, as in a file written by hand, begins here', async () => {
    const text = '---\ntitle: Check 47\ncreated: 2026-11-23\ntrigger: tomorrow 9:00\n---\n';
    const sinceMs = scheduledMs(parseTask(text, 'check-47') as Task);
    expect(localIso(sinceMs).slice(0, 16)).toBe('2026-11-23T00:00');
    expect(getLocal(await readTrigger('tomorrow 9:00', sinceMs))).toBe('2026-11-24T09:00');
    const daily = (await readTrigger('0 9 * * *', sinceMs)) as Trigger;
    const due = { sinceMs, firedMs: null, nowMs: new Date(2026, 10, 23, 10).getTime() };
    expect(await dueTime(daily, due)).toBe(new Date(2026, 10, 23, 9).getTime());
  });

  test('a time that was written reads back as the same moment', async () => {
    for (const atMs of [monday(), Date.UTC(2026, 2, 29, 1, 30), Date.UTC(2026, 9, 25, 1, 30), Date.UTC(2027, 3, 4)]) {
      expect(await readTrigger(localIso(atMs), atMs)).toEqual({ kind: 'time', atMs });
    }
  });

  test('a daily task is due once on each day of a year, at its local hour', async () => {
    const trigger = (await readTrigger('30 2 * * *', monday())) as Trigger;
    const startMs = new Date(2026, 0, 1, 12).getTime();
    let firedMs: number | null = null;
    const days: string[] = [];
    for (let nowMs = startMs; nowMs < startMs + 365 * 86_400_000; nowMs += 2 * 3_600_000) {
      const forMs: number | null = await dueTime(trigger, { sinceMs: startMs, firedMs, nowMs });
      if (forMs === null) continue;
      expect(nowMs - forMs).toBeLessThan(2 * 3_600_000 + 1);
      days.push(localIso(forMs).slice(0, 10));
      firedMs = forMs;
    }
    expect(days.length).toBe(365);
    expect(new Set(days).size).toBe(365);
  });
});

test('a time that surfaced does not surface again by the clock of another zone, until it is changed', async () => {
  const texts = new Map([['check', '---\ntitle: Check 47\ncreated: 2026-11-23\ntrigger: 2026-11-24 09:00\n---\n']]);
  const { surfacing, clock, shown } = openTaskRig(createMemoryTaskFiles(texts, new Map()));
  for (const name of ['Europe/Vienna', 'UTC', 'America/New_York', 'Europe/Vienna']) {
    process.env['TZ'] = name;
    clock.nowMs = Date.UTC(2026, 10, 24, name === 'Europe/Vienna' ? 8 : 15);
    await surfacing.look();
    expect(shown).toHaveLength(1);
  }
  const [[file, text]] = [...texts] as [[string, string]];
  texts.set(file, text.replace('24 09:00', '24 08:00'));
  await surfacing.look();
  await surfacing.close();
  expect(shown).toHaveLength(2);
});

test.each([
  'feb 30',
  '2026-02-30',
  '2027-02-30T09:00:00+01:00',
  '2027-13-01',
  '2027/13/01',
  'last monday',
  '1970-01-01',
  'yesterday',
  'every other day',
  'every monday at 25',
  'every monday and friday',
  'Check 47',
  '',
  '61 9 * * *',
  '0 0 30 2 *',
  'tomorrow 9:00 and friday',
  '2026-11-24T25:00:00Z',
  '* * * * * *',
  '../../x',
  'x'.repeat(5_000),
])('%j is refused with a reason', async (text) => {
  expect(await readTrigger(text, Date.UTC(2026, 10, 23, 11, 30))).toEqual(expect.stringContaining('(got "'));
});

test.each([
  ['Remind me tomorrow to call Ines', '2026-11-24T09:00', 'Call Ines'],
  ['Remind me to call Ines tomorrow.', '2026-11-24T09:00', 'Call Ines'],
  ['Please remind me tomorrow (2026-11-24) at 9 to renew the key.', '2026-11-24T09:00', 'Renew the key'],
  ['Can you remind me in 2 hours to call Jonas?', '2026-11-23T13:30', 'Call Jonas'],
  ['and remind me on December 1 to pay', '2026-12-01T09:00', 'Pay'],
  ['TODO - rotate the key next monday', '2026-11-30T09:00', 'Rotate the key'],
  ['Remind me every Monday (2026-11-30) to send the report', '0 9 * * 1', 'Send the report'],
  ['Please remind me to rotate the key every weekday at 8:15.', '15 8 * * 1-5', 'Rotate the key'],
  ['todo: foo.ts needs a test', undefined, 'foo.ts needs a test'],
  // The time is part of what is to be done, or may be no time.
  ['Remind me to finish the draft before Friday', '2026-11-27T09:00', 'Finish the draft before Friday'],
  ['Remind me to turn it on tomorrow', '2026-11-24T09:00', 'Turn it on tomorrow'],
  ['Remind me to read what Tom wrote on Friday', '2026-11-27T09:00', 'Read what Tom wrote on Friday'],
  ['Remind me to call April', '2027-04-01T09:00', 'Call April'],
  // No plain form.
  ['remind me on friday or monday to call Jonas', undefined, null],
  ['Remind me about the dentist tomorrow (2026-11-24)', '2026-11-24T09:00', null],
  ['Later we must move the queue to Postgres.', undefined, null],
  ['todo: !', undefined, null],
  ['Remind me every day and night to rest', '2026-11-23T20:00', null],
])('%j is a reminder at %s of %j', async (text, expected, title) => {
  expect(isReminder(text)).toBe(true);
  const read = await readReminder(text, new Date(2026, 10, 23, 11, 30).getTime());
  expect([read.trigger?.slice(0, 16), read.title]).toEqual([expected, title ?? text]);
});

test.each([
  'Remind me what we decided.',
  'Build a todo app.',
  'The todo list is broken.',
  "Don't forget to add a test.",
  'We must use Postgres.',
  'He reminded me of it later.',
])('%j is no reminder', (text) => {
  expect(isReminder(text)).toBe(false);
});

describe('what is due', () => {
  const at = (day: number, hour: number): number => new Date(2026, 10, day, hour).getTime();
  const daily: Trigger = { kind: 'cron', form: '0 9 * * *' };
  const once: Trigger = { kind: 'time', atMs: at(24, 9) };

  test('a time is due from then on, until it has surfaced', async () => {
    const past = { sinceMs: at(23, 9), firedMs: null };
    expect(await dueTime(once, { ...past, nowMs: at(24, 8) })).toBeNull();
    expect(await dueTime(once, { ...past, nowMs: at(24, 9) })).toBe(at(24, 9));
    expect(await dueTime(once, { ...past, nowMs: at(29, 9) })).toBe(at(24, 9));
    expect(await dueTime(once, { ...past, firedMs: at(24, 9), nowMs: at(29, 9) })).toBeNull();
    expect([await nextTime(once, at(24, 8)), await nextTime(once, at(24, 10))]).toEqual([at(24, 9), null]);
  });

  test('of the nights that were missed, the last counts', async () => {
    expect(await dueTime(daily, { sinceMs: at(1, 0), firedMs: at(20, 9), nowMs: at(23, 15) })).toBe(at(23, 9));
    expect(await dueTime(daily, { sinceMs: at(1, 0), firedMs: at(23, 9), nowMs: at(23, 15) })).toBeNull();
  });

  test('nothing was missed before the task was there', async () => {
    expect(await dueTime(daily, { sinceMs: at(23, 12), firedMs: null, nowMs: at(23, 15) })).toBeNull();
    expect(await dueTime(daily, { sinceMs: at(23, 12), firedMs: null, nowMs: at(24, 9) })).toBe(at(24, 9));
  });

  test('a clock that goes back over a time makes nothing due twice', async () => {
    expect(await dueTime(daily, { sinceMs: at(1, 0), firedMs: at(23, 9), nowMs: at(23, 8) })).toBeNull();
    expect(await dueTime(daily, { sinceMs: at(1, 0), firedMs: at(23, 9), nowMs: at(23, 9) })).toBeNull();
    expect(await dueTime(daily, { sinceMs: at(1, 0), firedMs: at(23, 9), nowMs: at(24, 9) })).toBe(at(24, 9));
  });

  test('a clock that was years ahead silences a task for a day at most', async () => {
    const firedMs = new Date(2030, 0, 1, 9).getTime();
    expect(await dueTime(daily, { sinceMs: at(1, 0), firedMs, nowMs: at(23, 15) })).toBe(at(23, 9));
  });
});
