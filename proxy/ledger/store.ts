import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { createMutex } from '../../common/async.ts';
import { appendTo, writePrivateFile } from '../../common/files.ts';
import { parseJson } from '../../common/text.ts';

/** Sums over requests. Tokens are prompt tokens unless named otherwise. */
export const EMPTY_TOTALS = {
  requests: 0,
  /** Refused by upstream although the untouched request was valid. */
  refused: 0,
  /** Tokens of the untouched and of the billed prompts. */
  original: 0,
  sent: 0,
  cacheRead: 0,
  cacheWrite5m: 0,
  cacheWrite1h: 0,
  output: 0,
  /** In tokens of uncached input. */
  untouchedEquivalents: 0,
  sentEquivalents: 0,
  /** Including output. */
  untouchedUsd: 0,
  sentUsd: 0,
  /** Model calls made by comet-cc itself. */
  ownCalls: 0,
  ownTokens: 0,
  ownUsd: 0,
};
export type Totals = Readonly<typeof EMPTY_TOTALS>;

export function addTotals(a: Totals, b: Partial<Totals>): Totals {
  const sums = Object.entries(a).map(([name, value]) => [name, value + (b[name as keyof Totals] ?? 0)]);
  return Object.fromEntries(sums) as Totals;
}

const amount = z.number();
const text = z.string();
/** Prompt tokens by price. */
const Bill = z.object({ input: amount, cacheRead: amount, cacheWrite5m: amount, cacheWrite1h: amount }).readonly();
const PrefixEntry = z.object({ key: text, ttl: text, expiresAtMs: amount }).readonly();
const Prefixes = z.array(PrefixEntry).readonly();
const AnyTotals = z.record(text, amount).transform((totals) => addTotals(EMPTY_TOTALS, totals));
/** A cut that has not paid off: its cost in USD, the requests within which it should, and how many are left. */
const Investment = z.object({ usd: amount, horizon: amount, left: amount }).readonly();
/** The cost of a conversation compared with its untouched cost. */
const Balance = z
  .object({
    untouchedUsd: amount,
    /** Negative when the conversation cost more. */
    savedUsd: amount,
    investments: z.array(Investment).readonly(),
    /** Consecutive requests that ended with a net loss. */
    streak: amount,
  })
  .readonly();
const Conversation = z
  .object({
    id: text,
    lastAtMs: amount,
    /** Lineage hash up to the first answer, shared by forks; '' before it. */
    root: text,
    rewritten: z.boolean(),
    totals: AnyTotals,
    balance: Balance,
    off: z.object({ atMs: amount, because: text }).readonly().nullable(),
  })
  .readonly();
/** `conversation` is '' when unknown. */
const about = { atMs: amount, conversation: text };
const RequestRecord = z.object({
  kind: z.literal('request'),
  ...about,
  requestId: text,
  root: text,
  model: text,
  rewritten: z.boolean(),
  /** Of the conversation itself or on its prefix: it counts in the balance. */
  counts: z.boolean(),
  /** The first request with a new cut. */
  cut: z.boolean(),
  billed: Bill,
  untouched: Bill,
  output: amount,
  touched: Prefixes,
});
const LedgerRecord = z.discriminatedUnion('kind', [
  RequestRecord,
  /** `isLast`: trimming is off in the conversation from then on. */
  z.object({ kind: z.literal('refused'), ...about, isLast: z.boolean().optional() }),
  z.object({ kind: z.literal('own'), ...about, calls: amount, tokens: amount, usd: amount }),
  // Summaries written by compaction.
  z.object({ kind: z.literal('day'), day: text.regex(/^\d{4}-\d\d-\d\d$/), totals: AnyTotals }),
  z.object({ kind: z.literal('conversation'), conversation: Conversation }),
  z.object({ kind: z.literal('prefixes'), touched: Prefixes }),
]);

export type Bill = z.infer<typeof Bill>;
export type PrefixEntry = z.infer<typeof PrefixEntry>;
export type Investment = z.infer<typeof Investment>;
export type Balance = z.infer<typeof Balance>;
export type Conversation = z.infer<typeof Conversation>;
export type RequestRecord = Readonly<z.infer<typeof RequestRecord>>;
export type LedgerRecord = Readonly<z.infer<typeof LedgerRecord>>;

/** Persists the ledger, or the receipts. */
export interface RecordStore<T> {
  /** All readable records, oldest first. */
  load(): Promise<readonly T[]>;
  append(record: T): Promise<void>;
  replace(records: readonly T[]): Promise<void>;
  /** Resolves once everything is written. */
  close(): Promise<void>;
}
export type LedgerStore = RecordStore<LedgerRecord>;

/**
 * One JSON line per record. Not synced: a power cut may lose the newest figures, never a request.
 * @param report  called once when records could not be read
 */
export function openLedgerFile(file: string, report: (message: string) => void): LedgerStore {
  const lines = openJsonlFile(file);
  return {
    async load() {
      try {
        const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '');
        const records = lines.flatMap((line) => LedgerRecord.safeParse(parseJson(line)).data ?? []);
        // A crash can tear only the last line.
        if (records.length < lines.length - 1) report(`${lines.length - records.length} lines could not be read`);
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

/**
 * An append-only file of lines with mode 0600. Operations run one at a time, in the order of the calls. Creates the file
 * and its directory on the first write. Not synced: a power cut may lose the last lines.
 */
export function openJsonlFile(file: string) {
  const lock = createMutex();
  return {
    /** @param linesFor  `isEmpty` is true for a new file and after the file was deleted */
    append(linesFor: (isEmpty: boolean) => readonly string[]): Promise<void> {
      // The leading newline separates the line from a torn line before it.
      return lock(() => appendTo(file, (isEmpty) => ['', ...linesFor(isEmpty)].join('\n'), false));
    },
    replace: (linesFor: () => readonly string[]) => lock(() => writePrivateFile(file, linesFor().join('\n'))),
    /** Resolves once everything is written. */
    close: (): Promise<void> => lock(async () => {}),
  };
}
