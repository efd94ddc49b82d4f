import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { LedgerRecord } from './entry.ts';
import { openJsonlFile } from './jsonl-file.ts';

/** Persists the ledger. */
export interface LedgerStore {
  /** All readable records, in order. */
  load(): Promise<readonly LedgerRecord[]>;
  append(record: LedgerRecord): Promise<void>;
  replace(records: readonly LedgerRecord[]): Promise<void>;
  /** Resolves once everything is written. */
  close(): Promise<void>;
}

/**
 * One JSON line per record. Not synced: a power cut may lose the newest figures, never a request.
 *
 * @param report  called once when records could not be read
 */
export function openLedgerFile(file: string, report: (message: string) => void): LedgerStore {
  const lines = openJsonlFile(file);
  return {
    async load() {
      try {
        const found = (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '');
        const records = found.flatMap(parseLine);
        // A crash can tear only the last line.
        if (records.length < found.length - 1) report(`${found.length - records.length} lines could not be read`);
        return records;
      } catch (error) {
        const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
        if (code !== 'ENOENT') report(`cannot be read (${code}); counting starts from zero`);
        return [];
      }
    },
    append: (record) => lines.append(() => [JSON.stringify(record)]),
    replace: (records) => lines.replace(() => records.map((record) => JSON.stringify(record))),
    close: () => lines.close(),
  };
}

/** Persists nothing. */
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
const RecordSchema = z.discriminatedUnion('kind', [
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
    const record = RecordSchema.safeParse(JSON.parse(line));
    return record.success ? [record.data as unknown as LedgerRecord] : [];
  } catch {
    return []; // a torn or damaged line
  }
}
