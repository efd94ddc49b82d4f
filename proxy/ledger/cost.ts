import { findModelTraits } from '../wire/models.ts';
import type { Bill, PrefixCache, PrefixEntry } from './prefix-cache.ts';
import { type Prompt, sumPromptTokens } from './prompt-usage.ts';

/** What a request was billed beside what it would have been billed untouched. */
export interface CostComparison {
  readonly untouched: Bill;
  /** What upstream now holds of the conversation as it would have been. */
  readonly touched: readonly PrefixEntry[];
}

export interface CostInput {
  readonly model: string;
  readonly atMs: number;
  readonly received: Prompt;
  /** Null where the bytes received went out. */
  readonly sent: Prompt | null;
  readonly billed: Bill;
}

/** One cache for each of the two courses that a conversation can take. */
export interface PrefixCaches {
  readonly untouched: PrefixCache;
  readonly sent: PrefixCache;
}

export function sumBill({ input, cacheRead, cacheWrite5m, cacheWrite1h }: Bill): number {
  return input + cacheRead + cacheWrite5m + cacheWrite1h;
}

/** Upstream held less than this share of what the model says: it let go of it. Above, estimates differ. */
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
 * Runs the prefix-cache model over both courses. Tokens are scaled so that the estimate of what was sent is what was
 * billed for it; and where upstream held less of that than the model says (or the model is new here and knows
 * nothing), what it would have held of the other course is corrected alike.
 */
export function compareCosts(caches: PrefixCaches, { model, atMs, received, sent, billed }: CostInput): CostComparison {
  const total = sumBill(billed);
  const estimate = sumPromptTokens(sent ?? received);
  const scale = estimate === 0 ? 0 : total / estimate;
  const request = { atMs, scale, minTokens: findModelTraits(model).minCacheTokens };
  const expected = caches.sent.bill(sent ?? received, request).bill;
  const { bill, touched } = caches.untouched.bill(received, request);
  if (sent === null) return { untouched: billed, touched };
  return { untouched: rounded(corrected(bill, expected, billed)), touched };
}

/** Upstream's cache is not ours to know: what was read of the one course says what of the other could be. */
function corrected(untouched: Bill, expected: Bill, billed: Bill): Bill {
  if (sumBill(billed) === billed.input) return asInput(untouched);
  return reRead(untouched, Math.round(readOf(untouched, expected, billed)));
}

function readOf(untouched: Bill, expected: Bill, billed: Bill): number {
  const total = sumBill(untouched);
  const unread = sumBill(billed) - billed.cacheRead;
  if (expected.cacheRead === 0) {
    // New here, or a prefix that we changed: what was read all the same was there before us.
    return untouched.cacheRead === 0 && billed.cacheRead > 0 ? total - unread : untouched.cacheRead;
  }
  const share = billed.cacheRead / expected.cacheRead;
  if (share < CLEAR_MISS) return untouched.cacheRead * share;
  const unreadExpected = sumBill(expected) - expected.cacheRead;
  if (unreadExpected === 0) return untouched.cacheRead;
  return total - Math.min(total, ((total - untouched.cacheRead) * unread) / unreadExpected);
}

/** A request that neither read nor wrote was not cached at all, and would not have been. */
function asInput(bill: Bill): Bill {
  return { input: sumBill(bill), cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0 };
}

/** The same prompt with `cacheRead` tokens read; what is read less or more was written, for as long as the rest is. */
function reRead(bill: Bill, cacheRead: number): Bill {
  const more = Math.min(cacheRead, sumBill(bill)) - bill.cacheRead;
  if (Math.abs(more) < 1 || sumBill(bill) === bill.input) return bill;
  const field = bill.cacheWrite1h >= bill.cacheWrite5m ? 'cacheWrite1h' : 'cacheWrite5m';
  const written = Math.max(0, bill[field] - more);
  const rest = sumBill(bill) - bill.input - bill[field] - bill.cacheRead;
  const read = sumBill(bill) - bill.input - written - rest;
  return { ...bill, [field]: written, cacheRead: read };
}

function rounded({ input, cacheRead, cacheWrite5m, cacheWrite1h }: Bill): Bill {
  return {
    input: Math.round(input),
    cacheRead: Math.round(cacheRead),
    cacheWrite5m: Math.round(cacheWrite5m),
    cacheWrite1h: Math.round(cacheWrite1h),
  };
}
