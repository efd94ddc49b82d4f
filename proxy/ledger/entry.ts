import type { Balance } from './loss-detector.ts';
import type { Bill, PrefixEntry } from './prefix-cache.ts';

/** Sums over requests. Tokens are prompt tokens unless named otherwise. */
export interface Totals {
  readonly requests: number;
  /** Refused by upstream although the untouched request was valid. */
  readonly refused: number;
  /** Tokens of the untouched and of the billed prompts. */
  readonly original: number;
  readonly sent: number;
  readonly cacheRead: number;
  readonly cacheWrite5m: number;
  readonly cacheWrite1h: number;
  readonly output: number;
  /** In tokens of uncached input. */
  readonly untouchedEquivalents: number;
  readonly sentEquivalents: number;
  /** Including output. */
  readonly untouchedUsd: number;
  readonly sentUsd: number;
  /** Model calls made by comet-cc itself. */
  readonly ownCalls: number;
  readonly ownTokens: number;
  readonly ownUsd: number;
}

export interface Conversation {
  readonly id: string;
  readonly lastAtMs: number;
  /** Lineage hash up to the first answer, shared by forks; '' before it. */
  readonly root: string;
  /** A rewritten request was sent. */
  readonly rewritten: boolean;
  readonly totals: Totals;
  readonly balance: Balance;
  /** Why trimming is off; null while it is on. */
  readonly off: { readonly atMs: number; readonly because: string } | null;
}

/** A request that upstream answered. */
export interface RequestRecord {
  readonly kind: 'request';
  readonly atMs: number;
  readonly requestId: string;
  readonly conversation: string;
  readonly root: string;
  readonly model: string;
  readonly rewritten: boolean;
  /** Counts in the conversation's balance. */
  readonly counts: boolean;
  readonly cut: boolean;
  readonly billed: Bill;
  readonly untouched: Bill;
  readonly output: number;
  readonly touched: readonly PrefixEntry[];
}

export type LedgerRecord =
  | RequestRecord
  | { readonly kind: 'refused'; readonly atMs: number; readonly conversation: string }
  | {
      readonly kind: 'own';
      readonly atMs: number;
      /** '' when unknown. */
      readonly conversation: string;
      readonly calls: number;
      readonly tokens: number;
      readonly usd: number;
    }
  /** Summaries written by compaction. */
  | { readonly kind: 'day'; readonly day: string; readonly totals: Totals }
  | { readonly kind: 'conversation'; readonly conversation: Conversation }
  | { readonly kind: 'prefixes'; readonly touched: readonly PrefixEntry[] };

export const EMPTY_TOTALS: Totals = {
  requests: 0,
  refused: 0,
  original: 0,
  sent: 0,
  cacheRead: 0,
  cacheWrite5m: 0,
  cacheWrite1h: 0,
  output: 0,
  untouchedEquivalents: 0,
  sentEquivalents: 0,
  untouchedUsd: 0,
  sentUsd: 0,
  ownCalls: 0,
  ownTokens: 0,
  ownUsd: 0,
};

export function addTotals(a: Totals, b: Partial<Totals>): Totals {
  const sum: Record<string, number> = {};
  for (const [name, value] of Object.entries(a)) sum[name] = value + (b[name as keyof Totals] ?? 0);
  return sum as unknown as Totals;
}
