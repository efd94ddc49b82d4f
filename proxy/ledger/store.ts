import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { LedgerRecord } from './entry.ts';
import { openJsonlFile } from './jsonl-file.ts';

/** Keeps the ledger over restarts. */
export interface LedgerStore {
  /** Every record kept, in order; what cannot be read is left out. */
  load(): Promise<readonly LedgerRecord[]>;
  /** Records keep the order of the calls. */
  append(record: LedgerRecord): Promise<void>;
  /** Puts `records` in the place of all that is kept. */
  replace(records: readonly LedgerRecord[]): Promise<void>;
  /** Resolves once all is written. */
  close(): Promise<void>;
}

/**
 * One line of JSON for each record. Not synced: a power cut may cost the last requests' figures, never a request.
 *
 * @param report  told once what of the file could not be read
 */
export function openLedgerFile(file: string, report: (message: string) => void): LedgerStore {
  const lines = openJsonlFile(file);
  return {
    async load() {
      try {
        const found = (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '');
        const records = found.flatMap(parseLine);
        // A crash tears the last line at most.
        if (records.length < found.length - 1) report(`${found.length - records.length} lines could not be read`);
        return records;
      } catch (error) {
        const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
        if (code !== 'ENOENT') report(`cannot be read (${code}); counting starts anew`);
        return [];
      }
    },
    append: (record) => lines.append(() => [JSON.stringify(record)]),
    replace: (records) => lines.replace(() => records.map((record) => JSON.stringify(record))),
    close: () => lines.close(),
  };
}

/** Keeps nothing beyond the process. */
export function createMemoryLedger(records: LedgerRecord[] = []): LedgerStore {
  return {
    load: async () => [...records],
    append: async (record) => void records.push(record),
    replace: async (fresh) => void records.splice(0, records.length, ...fresh),
    close: async () => {},
  };
}

const amount = z.number();
const text = z.string();
const Bill = z.object({ input: amount, cacheRead: amount, cacheWrite5m: amount, cacheWrite1h: amount });
const Prefixes = z.array(z.object({ key: text, ttl: text, expiresAtMs: amount }));
const Totals = z.record(text, amount);
const Investments = z.array(z.object({ usd: amount, horizon: amount, left: amount }));
const Balance = z.object({ untouchedUsd: amount, savedUsd: amount, investments: Investments, streak: amount });
const about = { atMs: amount, conversation: text };
const Sound = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('request'),
    ...about,
    requestId: text,
    root: text,
    model: text,
    rewritten: z.boolean(),
    counts: z.boolean(),
    cut: z.boolean(),
    billed: Bill,
    untouched: Bill,
    output: amount,
    touched: Prefixes,
  }),
  z.object({ kind: z.literal('refused'), ...about }),
  z.object({ kind: z.literal('own'), ...about, calls: amount, tokens: amount, usd: amount }),
  z.object({ kind: z.literal('day'), day: text.regex(/^\d{4}-\d\d-\d\d$/), totals: Totals }),
  z.object({
    kind: z.literal('conversation'),
    conversation: z.object({
      id: text,
      lastAtMs: amount,
      root: text,
      rewritten: z.boolean(),
      totals: Totals,
      balance: Balance,
      off: z.object({ atMs: amount, because: text }).nullable(),
    }),
  }),
  z.object({ kind: z.literal('prefixes'), touched: Prefixes }),
]);

function parseLine(line: string): LedgerRecord[] {
  try {
    const record = Sound.safeParse(JSON.parse(line));
    return record.success ? [record.data as unknown as LedgerRecord] : [];
  } catch {
    return []; // torn, or damaged by somebody
  }
}
