import { mkdtempSync } from 'node:fs';
import { appendFile, mkdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { silentLog } from '../../../../common/log.ts';
import { openCostLedger } from '../../../../proxy/ledger/index.ts';
import { type LedgerRecord, openLedgerFile } from '../../../../proxy/ledger/store.ts';
import { ledgerStoreContract } from '../../../contract/ledger-store.ts';
import { createMemoryRecords } from '../../../helpers/memory-records.ts';

const dir = mkdtempSync(path.join(os.tmpdir(), 'comet-ledger-'));
afterAll(() => rm(dir, { recursive: true, force: true }));

const kept: LedgerRecord[] = [];
ledgerStoreContract('the ledger in memory', () => createMemoryRecords(kept));
ledgerStoreContract('the ledger file', () => openLedgerFile(path.join(dir, 'contract', 'costs.jsonl'), () => {}));

const rule = { tolerance: 0.05, credit: 10_000, longestHorizon: 60 };
const DAY_MS = 86_400_000;

function ledgerOn(file: string, nowMs = 0, reported: string[] = []) {
  const store = openLedgerFile(file, (message) => void reported.push(message));
  return openCostLedger({ store, rule, clock: { now: () => nowMs }, log: silentLog });
}

const own = { conversation: 's', calls: 1, tokens: 10, usd: 0.25 };

afterEach(() => vi.unstubAllEnvs());

describe('the ledger file', () => {
  it.each([
    ['America/Los_Angeles', '2026-11-28', '2026-11-29'],
    ['Asia/Tokyo', '2026-11-29', '2026-11-30'],
  ])('counts by the days of %s', async (zone, evening, morning) => {
    vi.stubEnv('TZ', zone);
    const file = path.join(dir, 'zones', zone, 'costs.jsonl');
    await mkdir(path.dirname(file), { recursive: true });
    // One day of UTC, in both zones.
    for (const at of [`${evening}T17:00`, `${morning}T08:00`]) {
      const ledger = await ledgerOn(file, Date.parse(at));
      ledger.recordOwnCall(own);
      await ledger.close();
    }
    const ledger = await ledgerOn(file);
    expect(ledger.days().map(([day]) => day)).toEqual([evening, morning]);
    expect(ledger.totals(Date.parse(`${morning}T08:00`)).ownCalls).toBe(1);
    await ledger.close();
  });

  it('is the user’s alone', async () => {
    const file = path.join(dir, 'modes', 'costs.jsonl');
    const ledger = await ledgerOn(file);
    ledger.recordOwnCall(own);
    await ledger.close();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(path.dirname(file))).mode & 0o777).toBe(0o700);
  });

  it('loses a torn line and nothing else', async () => {
    const file = path.join(dir, 'torn.jsonl');
    const first = await ledgerOn(file);
    for (let at = 0; at < 3; at += 1) first.recordOwnCall(own);
    await first.close();
    await truncate(file, (await stat(file)).size - 20);
    const reported: string[] = [];
    const second = await ledgerOn(file, 0, reported);
    second.recordOwnCall(own);
    await second.close();
    expect(reported).toEqual([]);
    expect((await ledgerOn(file)).totals(0)).toMatchObject({ ownCalls: 3, ownTokens: 30, ownUsd: 0.75 });
  });

  it('starts at zero with a file of another kind, and reports it', async () => {
    const file = path.join(dir, 'foreign.jsonl');
    await writeFile(file, '{"kind":"own"}\n[]\n{"kind":"day","day":"yesterday","totals":{}}\nnot json\n');
    const reported: string[] = [];
    const ledger = await ledgerOn(file, 0, reported);
    expect(reported).toEqual(['4 lines could not be read']);
    ledger.recordOwnCall(own);
    await ledger.close();
    expect((await ledgerOn(file)).totals(0).ownCalls).toBe(1);
    const folder = path.join(dir, 'folder.jsonl');
    await mkdir(folder);
    expect((await ledgerOn(folder, 0, reported)).totals(0).ownCalls).toBe(0);
    expect(reported.at(-1)).toContain('EISDIR');
  });

  it('stays small: thousands of records become one for each day and conversation, with the same sums', async () => {
    const file = path.join(dir, 'many.jsonl');
    await appendFile(file, Array.from({ length: 5_000 }, (_, at) => line(at)).join('\n'));
    const before = (await stat(file)).size;
    const ledger = await ledgerOn(file, 12 * DAY_MS);
    await ledger.close();
    expect((await stat(file)).size).toBeLessThan(before / 50);
    const again = await ledgerOn(file, 12 * DAY_MS);
    for (const sinceMs of [0, 5 * DAY_MS]) expect(again.totals(sinceMs)).toEqual(ledger.totals(sinceMs));
    expect(again.totals(0).ownCalls).toBe(5_000);
    expect((await readFile(file, 'utf8')).split('\n').length).toBe(10 + 3 + 1);
    function line(at: number): string {
      return JSON.stringify({ ...own, kind: 'own', atMs: (at % 10) * DAY_MS, conversation: `s${at % 3}` });
    }
  });
});
