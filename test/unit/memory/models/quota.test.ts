import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { noQuota } from '../../../../bench/no-files.ts';
import { createBackoff, decideQuota, mergeQuota, readQuota } from '../../../../memory/models/quota.ts';

const NOW = Date.UTC(2026, 2, 4, 10, 0, 0);
const RESET = NOW + 2 * 3_600_000;
const rule = { maxUtilization: 0.8, dailyTokens: 500_000, sessionTokens: 200_000, costShare: 0.02 };

const unified = (used: string, reset: string = String(RESET / 1_000)): Record<string, string> => ({
  'anthropic-ratelimit-unified-status': 'allowed',
  'anthropic-ratelimit-unified-reset': reset,
  'anthropic-ratelimit-unified-representative-claim': 'five_hour',
  'anthropic-ratelimit-unified-5h-utilization': used,
  'anthropic-ratelimit-unified-5h-reset': reset,
  'anthropic-ratelimit-unified-overage-status': 'rejected',
});
const decide = (
  headers: Record<string, string>,
  over: { status?: number; tokensToday?: number; nowMs?: number } = {},
) =>
  decideQuota(readQuota({ status: over.status ?? 200, headers }, NOW), {
    rule,
    tokensToday: over.tokensToday ?? 0,
    nowMs: over.nowMs ?? NOW,
  });

describe('the governor', () => {
  test.each(['0.79', '79', '79 %', '79%'])('allows at %s', (used) => {
    expect(decide(unified(used))).toEqual({ kind: 'allow' });
  });

  test.each(['0.81', '81', '81 %', '81.0', '0.2, 0.81', '1.07', '100'])('defers until the reset at %s', (used) => {
    const decision = decide(unified(used));
    expect(decision).toMatchObject({ kind: 'defer', untilMs: RESET });
  });

  test('says why in plain words', () => {
    expect(decide(unified('0.81'))).toMatchObject({
      because: 'the 5h limit is 81 % used, and our own calls stop at 80 %',
    });
  });

  test('allows again from the reset on', () => {
    expect(decide(unified('0.81'), { nowMs: RESET - 1 }).kind).toBe('defer');
    expect(decide(unified('0.81'), { nowMs: RESET })).toEqual({ kind: 'allow' });
  });

  test.each([
    ['seconds', String(RESET / 1_000)],
    ['milliseconds', String(RESET)],
    ['a date', new Date(RESET).toISOString()],
    ['seconds from now', '7200'],
  ])('reads a reset given as %s', (_, reset) => {
    expect(decide(unified('0.9', reset))).toMatchObject({ untilMs: RESET });
  });

  test.each(['', 'soon', '-5', String(NOW / 1_000 - 60), '99999999999999'])(
    'waits a while where a reset is "%s"',
    (reset) => {
      expect(decide(unified('0.9', reset))).toMatchObject({ untilMs: NOW + 15 * 60_000 });
    },
  );

  test('waits for the last of several limits to end', () => {
    const week = String((NOW + 3 * 86_400_000) / 1_000);
    const headers = {
      ...unified('0.9'),
      'anthropic-ratelimit-unified-7d-utilization': '0.85',
      'anthropic-ratelimit-unified-7d-reset': week,
    };
    expect(decide(headers)).toMatchObject({ untilMs: NOW + 3 * 86_400_000 });
  });

  test('reads one percent as a percentage next to other percentages', () => {
    const headers = { ...unified('1'), 'anthropic-ratelimit-unified-7d-utilization': '40' };
    expect(decide(headers)).toEqual({ kind: 'allow' });
    expect(decide(unified('1')).kind).toBe('defer');
  });

  test('reads the limits of an API key', () => {
    const key = (remaining: string): Record<string, string> => ({
      'anthropic-ratelimit-input-tokens-limit': '100000',
      'anthropic-ratelimit-input-tokens-remaining': remaining,
      'anthropic-ratelimit-input-tokens-reset': new Date(NOW + 30_000).toISOString(),
    });
    expect(decide(key('21000')).kind).toBe('allow');
    expect(decide(key('19000'))).toMatchObject({ kind: 'defer', untilMs: NOW + 30_000 });
  });

  test('heeds a refusal even where no share is told', () => {
    const headers = {
      'anthropic-ratelimit-unified-status': 'rejected',
      'anthropic-ratelimit-unified-reset': String(RESET / 1_000),
    };
    expect(decide(headers, { status: 429 })).toMatchObject({ kind: 'defer', untilMs: RESET });
    expect(decide({ 'retry-after': '60' }, { status: 429 })).toMatchObject({ untilMs: NOW + 60_000 });
    expect(decide({ 'retry-after': '60' }, { status: 529 }).kind).toBe('allow');
  });

  test('stops at the daily cap until midnight', () => {
    const untilMs = new Date(2026, 2, new Date(NOW).getDate() + 1).getTime();
    expect(decide({}, { tokensToday: 499_999 }).kind).toBe('allow');
    expect(decide({}, { tokensToday: 500_000 })).toMatchObject({ kind: 'defer', untilMs });
  });

  test('stops for a session that used its tokens, unless there is no limit', () => {
    const decide = (tokensOfSession: number, sessionTokens = 200_000) =>
      decideQuota([], { rule: { ...rule, sessionTokens }, tokensToday: 500_000, tokensOfSession, nowMs: NOW });
    expect(decide(199_999).kind).toBe('defer');
    expect(decide(200_000)).toMatchObject({ kind: 'spent', because: expect.stringContaining('200000') });
    expect(decide(200_000, 0).kind).toBe('defer');
  });

  test('waits while one more call would make recent sessions cost the share more than without', () => {
    const decideCost = (untouchedUsd: number, sentUsd: number, ownUsd: number, ownCalls: number) =>
      decideQuota([], {
        ...{ rule, tokensToday: 0, nowMs: NOW },
        recent: { untouchedUsd, sentUsd, ownUsd, ownCalls },
      });
    expect(decideCost(0, 0, 0, 0).kind).toBe('allow');
    expect(decideCost(1, 1, 0.2, 10).kind).toBe('allow');
    const waits = { kind: 'defer', untilMs: NOW + 15 * 60_000, because: expect.stringContaining('2 %') };
    expect(decideCost(1, 1, 0.24, 10)).toMatchObject(waits);
    expect(decideCost(100, 100, 1.9, 95).kind).toBe('allow');
    expect(decideCost(100, 100, 1.99, 99)).toMatchObject(waits);
    expect(decideCost(100, 90, 11.9, 500).kind).toBe('allow');
    expect(decideCost(100, 90, 12, 500)).toMatchObject(waits);
  });

  test('uses the newest report of a limit and forgets one that was reset', () => {
    const before = readQuota({ status: 200, headers: unified('0.9') }, NOW);
    const after = readQuota({ status: 200, headers: unified('0.1') }, NOW + 1);
    expect(mergeQuota(before, after, NOW + 1).map((window) => window.utilization)).toEqual([0.1]);
    expect(mergeQuota(before, [], NOW + 1)).toEqual(before);
    expect(mergeQuota(before, [], RESET)).toEqual([]);
  });
});

describe('garbage in the headers', () => {
  const name = fc.oneof(
    fc.string(),
    fc
      .tuple(
        fc.constantFrom('unified-', '', 'unified-unified-'),
        fc.constantFrom('5h', '7d', 'tokens', '__proto__', 'constructor', 'x'.repeat(60), ''),
        fc.constantFrom('-utilization', '-reset', '-status', '-limit', '-remaining', ''),
      )
      .map((all) => `anthropic-ratelimit-${all.join('')}`),
    fc.constant('retry-after'),
  );
  const value = fc.oneof(
    fc.string(),
    fc.double().map(String),
    fc.integer().map(String),
    fc.constantFrom('NaN', '1e999', '-1', '81 %', '0.81', ',,,', '9'.repeat(400)),
  );
  const headers = fc.dictionary(name, value);

  test('never throws, and never defers without an end', () => {
    fc.assert(
      fc.property(headers, fc.constantFrom(200, 429), (some, status) => {
        const windows = readQuota({ status, headers: some }, NOW);
        const decision = decideQuota(windows, { rule, tokensToday: 0, nowMs: NOW });
        expect(decision.kind).not.toBe('spent');
        if (decision.kind !== 'defer') return;
        expect(decision.untilMs).toBeGreaterThan(NOW);
        expect(decision.untilMs).toBeLessThanOrEqual(NOW + 8 * 86_400_000);
        expect(decision.because).toMatch(/^[ -~]+$/);
      }),
      { numRuns: 2_000 },
    );
  });

  test('never hides a limit that is used up, nor a spent day', () => {
    const used = fc.double({ min: 0.8, max: 2, noNaN: true }).filter((share) => share >= 0.8);
    fc.assert(
      fc.property(headers, used, fc.integer({ min: 0, max: 600_000 }), (some, share, tokensToday) => {
        const told = { ...some, 'anthropic-ratelimit-unified-5h-utilization': share.toFixed(6) };
        const windows = readQuota({ status: 200, headers: told }, NOW);
        const isWhole = /^\d+$/.test(share.toFixed(6));
        if (!isWhole) expect(decideQuota(windows, { rule, tokensToday: 0, nowMs: NOW }).kind).toBe('defer');
        const bare = decideQuota(readQuota({ status: 200, headers: some }, NOW), { rule, tokensToday, nowMs: NOW });
        if (tokensToday >= rule.dailyTokens) expect(bare.kind).toBe('defer');
      }),
      { numRuns: 2_000 },
    );
  });
});

test('a model that failed is left alone for a minute, then twice as long each time, at most half an hour', () => {
  let nowMs = 0;
  const gate = createBackoff({ now: () => nowMs }, noQuota);
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
  const gate = createBackoff({ now: () => nowMs }, noQuota);
  gate.failed();
  nowMs -= 365 * 86_400_000;
  expect(gate.waitMs()).toBe(60_000);
  nowMs += 60_000;
  expect(gate.isOpen()).toBe(true);
  gate.failed();
  nowMs += 365 * 86_400_000;
  expect(gate.isOpen()).toBe(true);
});
