import { findModelTraits } from '../wire/models.ts';
import type { Bill, PrefixCache, PrefixEntry } from './prefix-cache.ts';
import { type Prompt, sumPromptTokens } from './prompt-usage.ts';

/** What a request would have cost untouched. */
export interface CostComparison {
  readonly untouched: Bill;
  /** What upstream's cache would hold of the untouched conversation. */
  readonly touched: readonly PrefixEntry[];
}

export interface CostInput {
  readonly model: string;
  readonly atMs: number;
  readonly received: Prompt;
  /** Null when the received bytes went upstream. */
  readonly sent: Prompt | null;
  readonly billed: Bill;
}

/** Models upstream's cache for the untouched and the rewritten conversation. */
export interface PrefixCaches {
  readonly untouched: PrefixCache;
  readonly sent: PrefixCache;
}

export function sumBill({ input, cacheRead, cacheWrite5m, cacheWrite1h }: Bill): number {
  return input + cacheRead + cacheWrite5m + cacheWrite1h;
}

/** Below this share of the modeled cache reads, upstream evicted the prefix; above, the estimate is inexact. */
const CLEAR_MISS = 0.5;

/** In tokens of uncached input. */
export function inputEquivalents(model: string, bill: Bill): number {
  const traits = findModelTraits(model);
  const written = bill.cacheWrite5m * traits.cacheWrite5m + bill.cacheWrite1h * traits.cacheWrite1h;
  return bill.input + bill.cacheRead * traits.cacheRead + written;
}

export function costUsd(model: string, bill: Bill, outputTokens: number): number {
  const { inputPrice, outputPrice } = findModelTraits(model);
  return (inputEquivalents(model, bill) * inputPrice + outputTokens * outputPrice) / 1_000_000;
}

/**
 * Runs the prefix-cache model for both conversations. Token estimates are scaled so that the sent prompt matches its
 * bill. When upstream read less from its cache than the model predicts (or the model has no history yet), the cache reads
 * of the untouched conversation are corrected alike.
 */
export function compareCosts(caches: PrefixCaches, { model, atMs, received, sent, billed }: CostInput): CostComparison {
  const total = sumBill(billed);
  const estimate = sumPromptTokens(sent ?? received);
  const scale = estimate === 0 ? 0 : total / estimate;
  const request = { atMs, scale, minTokens: findModelTraits(model).minCacheTokens };
  const expected = caches.sent.bill(sent ?? received, request).bill;
  const { bill, touched } = caches.untouched.bill(received, request);
  if (sent === null) return { untouched: billed, touched };
  return { untouched: roundBill(correctBill(bill, expected, billed)), touched };
}

/** Upstream's cache is not observable: reads of the sent prompt indicate what the untouched one would have read. */
function correctBill(untouched: Bill, expected: Bill, billed: Bill): Bill {
  if (sumBill(billed) === billed.input) return billUncached(untouched);
  return billWithReads(untouched, Math.round(estimateReads(untouched, expected, billed)));
}

function estimateReads(untouched: Bill, expected: Bill, billed: Bill): number {
  const total = sumBill(untouched);
  const unread = sumBill(billed) - billed.cacheRead;
  if (expected.cacheRead === 0) {
    // A new model or a changed prefix: actual reads were cached before the rewrite.
    return untouched.cacheRead === 0 && billed.cacheRead > 0 ? total - unread : untouched.cacheRead;
  }
  const share = billed.cacheRead / expected.cacheRead;
  if (share < CLEAR_MISS) return untouched.cacheRead * share;
  const unreadExpected = sumBill(expected) - expected.cacheRead;
  if (unreadExpected === 0) return untouched.cacheRead;
  return total - Math.min(total, ((total - untouched.cacheRead) * unread) / unreadExpected);
}

/** A request without cache reads and writes would not have used the cache untouched either. */
function billUncached(bill: Bill): Bill {
  return { input: sumBill(bill), cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0 };
}

/** The same prompt with `cacheRead` tokens read; the difference moves to the larger kind of cache write. */
function billWithReads(bill: Bill, cacheRead: number): Bill {
  const more = Math.min(cacheRead, sumBill(bill)) - bill.cacheRead;
  if (Math.abs(more) < 1 || sumBill(bill) === bill.input) return bill;
  const field = bill.cacheWrite1h >= bill.cacheWrite5m ? 'cacheWrite1h' : 'cacheWrite5m';
  const written = Math.max(0, bill[field] - more);
  const rest = sumBill(bill) - bill.input - bill[field] - bill.cacheRead;
  const read = sumBill(bill) - bill.input - written - rest;
  return { ...bill, [field]: written, cacheRead: read };
}

function roundBill({ input, cacheRead, cacheWrite5m, cacheWrite1h }: Bill): Bill {
  return {
    input: Math.round(input),
    cacheRead: Math.round(cacheRead),
    cacheWrite5m: Math.round(cacheWrite5m),
    cacheWrite1h: Math.round(cacheWrite1h),
  };
}
