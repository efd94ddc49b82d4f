import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { silentLog } from '../../../../common/log.ts';
import type { Memory } from '../../../../memory/index.ts';
import { writtenBy } from '../../../../memory/library.ts';
import {
  type Budget,
  createUsageCounter,
  createUsageFile,
  openBudget,
  type UsageStore,
} from '../../../../memory/models/quota.ts';
import { createDisk, type Disk, openRig } from '../../../helpers/memory-rig.ts';
import { calmReading, oneNode, scriptedModel } from '../../../helpers/scripted-model.ts';
import { talk } from '../../../helpers/turns.ts';

const RESET_MS = 2 * 3_600_000;
let dir: string;
let file: string;
let disk: Disk;
const opened: { close(): Promise<void> }[] = [];

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), 'cc-quota-'));
  file = path.join(dir, 'ledger', 'model-use.json');
  disk = createDisk();
});
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
  rmSync(dir, { recursive: true });
});

async function govern(dailyTokens = 500_000, sessionTokens = 0): Promise<Budget> {
  const governor = await openBudget({
    rule: { maxUtilization: 0.8, dailyTokens, sessionTokens, costShare: 0.02 },
    store: createUsageFile(file, silentLog),
    clock: { now: () => disk.nowMs },
    log: silentLog,
  });
  opened.push(governor);
  return governor;
}

const model = () =>
  scriptedModel({
    sense: () => calmReading,
    compact: (input) => oneNode(input, input.turns.map((turn) => turn.user).join('; ')),
  });

async function remember(quota: Budget, using = model()): Promise<Memory> {
  const memory = await openRig(disk, { model: using, quota });
  opened.push(memory.maintenance);
  return memory;
}

function used(governor: Budget, share: string): void {
  const reset = String((disk.nowMs + RESET_MS) / 1_000);
  governor.observeLimits({
    status: 200,
    headers: { 'anthropic-ratelimit-unified-5h-utilization': share, 'anthropic-ratelimit-unified-5h-reset': reset },
  });
}

const turns = [
  talk('The staging database listens on port 5433.', 'Noted.'),
  talk('We decided to use pnpm, never npm.', 'Understood: pnpm only.'),
  talk('Payment retries must be capped at 4.', 'Capped at 4.'),
];
const writers = (memory: Memory): string[] => [...new Set(memory.library.list({}).map((node) => writtenBy(node)))];

describe('memory under a quota', () => {
  test('asks the model at 79 % of a limit', async () => {
    const governor = await govern();
    used(governor, '0.79');
    const memory = await remember(governor);
    memory.capture.captureTurns(turns);
    await memory.maintenance.flush(60_000);
    expect(writers(memory)).toEqual(['scripted']);
    expect(memory.maintenance.status().llm).toMatchObject({ deferred: 0, deferred_because: '', deferred_until: null });
  });

  test('asks nothing at 81 %, says so, and catches up after the reset', async () => {
    const governor = await govern();
    used(governor, '0.81');
    const using = model();
    const memory = await remember(governor, using);
    memory.capture.captureTurns(turns);
    await memory.maintenance.flush(60_000);
    expect([using.sensed.length, using.compacted.length]).toEqual([0, 0]);
    expect(writers(memory)).toEqual(['local']);
    expect(memory.maintenance.status().llm).toMatchObject({
      deferred: 1,
      deferred_because: 'the 5h limit is 81 % used, and our own calls stop at 80 %',
      deferred_until: new Date(disk.nowMs + RESET_MS).toISOString(),
    });
    disk.nowMs += RESET_MS;
    await memory.maintenance.flush(60_000);
    expect(writers(memory)).toEqual(['scripted']);
    expect(memory.maintenance.status().llm.deferred).toBe(0);
    expect(memory.recall.nodesCovering(turns.map((turn) => turn.turnId)).size).toBe(3);
  });

  test('keeps waiting over a restart, and catches up in the next life', async () => {
    const first = await govern();
    used(first, '81 %');
    const before = await remember(first);
    before.capture.captureTurns(turns);
    await before.maintenance.close();
    await first.close();
    const second = await govern();
    const using = model();
    const after = await remember(second, using);
    await after.maintenance.flush(60_000);
    expect(using.compacted).toHaveLength(0);
    expect(after.maintenance.status().llm.deferred).toBe(1);
    disk.nowMs += RESET_MS;
    await after.maintenance.flush(60_000);
    expect(writers(after)).toEqual(['scripted']);
  });

  test('continues early when a response reports a limit that was reset', async () => {
    const governor = await govern();
    used(governor, '0.95');
    const memory = await remember(governor);
    memory.capture.captureTurns(turns);
    await memory.maintenance.flush(60_000);
    used(governor, '0.02');
    await memory.maintenance.flush(60_000);
    expect(writers(memory)).toEqual(['scripted']);
  });
});

describe('the use of a session', () => {
  const sessionId = turns[0]?.sessionId ?? '';

  test('is kept over restarts; when it is spent rules write that session, and the model others', async () => {
    const before = await govern(500_000, 1_000);
    before.record({ calls: 1, tokens: 600, costUsd: 0, sessionId });
    before.record({ calls: 1, tokens: 400, costUsd: 0, sessionId });
    await before.close();
    const governor = await govern(500_000, 1_000);
    expect(governor.recentSessions()).toMatchObject([{ sessionId, tokens: 1_000, isSpent: true }]);
    const using = model();
    const memory = await remember(governor, using);
    memory.capture.captureTurns([...turns, talk('The cache listens on port 6380.', 'Noted.', { sessionId: 'other' })]);
    await memory.maintenance.flush(60_000);
    const { library } = memory;
    const byWriter = (session: string) => library.list({ sessionId: session }).map(writtenBy);
    expect(new Set(byWriter(sessionId))).toEqual(new Set(['local']));
    expect(byWriter('other')).toEqual(['scripted']);
    expect(using.sensed).toHaveLength(0);
    expect(memory.maintenance.status().llm).toMatchObject({ deferred: 0, deferred_because: '' });
    const [node] = library.list({ sessionId });
    expect(await library.show(node?.node_id ?? '', 1)).toMatchObject({
      detail_note: expect.stringContaining('of the 1000 tokens allowed for this session'),
    });
  });

  test('continues after a restart with more, and without a limit', async () => {
    const small = await govern(500_000, 1_000);
    small.record({ calls: 1, tokens: 1_000, costUsd: 0, sessionId });
    const before = await remember(small);
    before.capture.captureTurns(turns);
    await before.maintenance.close();
    await small.close();
    const unlimited = await govern(500_000, 0);
    expect(unlimited.recentSessions()).toMatchObject([{ isSpent: false }]);
    const after = await remember(unlimited);
    await after.maintenance.flush(60_000);
    expect(writers(after)).toEqual(['scripted']);
  });

  test('is shown for a day', async () => {
    const governor = await govern(500_000, 1_000);
    governor.record({ calls: 1, tokens: 10, costUsd: 0, sessionId: 'a' });
    governor.record({ calls: 1, tokens: 20, costUsd: 0, sessionId: 'b' });
    governor.record({ calls: 1, tokens: 5, costUsd: 0 });
    expect(governor.recentSessions().map((each) => [each.sessionId, each.tokens])).toEqual([
      ['b', 20],
      ['a', 10],
    ]);
    disk.nowMs += 86_400_001;
    expect(governor.recentSessions()).toEqual([]);
  });
});

describe('the use of a day', () => {
  test('is kept over restarts, privately, and stops calls at the cap until the next day', async () => {
    const first = await govern(1_000);
    first.record({ calls: 1, tokens: 600, costUsd: 0.0125 });
    await first.close();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const second = await govern(1_000);
    expect(second.today()).toMatchObject({ calls: 1, tokens: 600, costUsd: 0.0125 });
    expect(second.decide().kind).toBe('allow');
    second.record({ calls: 1, tokens: 400, costUsd: 0.01 });
    expect(second.decide()).toMatchObject({ kind: 'defer', because: expect.stringContaining('1000') });
    await second.close();
    const third = await govern(1_000);
    expect(third.decide().kind).toBe('defer');
    disk.nowMs += 86_400_000;
    expect(third.decide().kind).toBe('allow');
    expect(third.today()).toMatchObject({ calls: 0, tokens: 0, costUsd: 0 });
  });

  test.each([
    '',
    '{',
    'null',
    '[]',
    '{"day":"x"}',
    '{"day":"2026-01-01","calls":-1,"tokens":1,"cost_usd":0,"limits":[]}',
  ])('starts anew where its file holds %j', async (text) => {
    const governor = await govern();
    governor.record({ calls: 1, tokens: 1, costUsd: 0 });
    await governor.close();
    writeFileSync(file, text);
    const next = await govern();
    expect(next.today()).toMatchObject({ calls: 0, tokens: 0 });
    next.record({ calls: 1, tokens: 2, costUsd: 0 });
    await next.close();
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ calls: 1, tokens: 2 });
  });

  test.each([0, 1, 2, 3, 4, 5])('keeps what is used %i microtasks after a write', async (ticks) => {
    const saved: number[] = [];
    let written = (): void => {};
    const store: UsageStore = {
      load: async () => null,
      save: ({ tokens }) => {
        saved.push(tokens);
        return new Promise((resolve) => {
          written = resolve;
        });
      },
    };
    const rule = { maxUtilization: 0.8, dailyTokens: 500_000, sessionTokens: 0, costShare: 0.02 };
    const budget = await openBudget({ rule, store, clock: { now: () => disk.nowMs }, log: silentLog });
    const spent = { calls: 1, tokens: 10, costUsd: 0 };
    budget.record(spent);
    written();
    for (let tick = 0; tick < ticks; tick += 1) await null;
    budget.record(spent);
    await after(0);
    expect(saved).toEqual([10, 20]);
  });

  test('writes nothing while there is nothing to keep', async () => {
    const governor = await govern();
    used(governor, '0.1');
    await governor.close();
    expect(existsSync(file)).toBe(false);
  });
});

test('a day of use is one of this machine, and so is the midnight that calls wait for', async () => {
  vi.stubEnv('TZ', 'America/Los_Angeles');
  try {
    let nowMs = Date.parse('2026-11-28T17:00');
    disk.nowMs = nowMs;
    const spent = await govern(500);
    spent.record({ calls: 1, tokens: 600, costUsd: 0.01 });
    expect(spent.decide()).toMatchObject({ untilMs: Date.parse('2026-11-29T00:00') });
    const usage = createUsageCounter(() => nowMs);
    usage.record({ calls: 1, tokens: 600, costUsd: 0.01 });
    expect(usage.today()).toMatchObject({ day: '2026-11-28', calls: 1 });
    // The same day of UTC.
    nowMs = Date.parse('2026-11-29T08:00');
    expect(usage.today()).toMatchObject({ day: '2026-11-29', calls: 0 });
  } finally {
    vi.unstubAllEnvs();
  }
});
