import type { Config } from '../../common/config.ts';
import { countTokens } from '../../common/text.ts';
import { countRequestTokens } from '../wire/conversation.ts';
import { findModelTraits } from '../wire/models.ts';
import { findHeadEnd, sumDroppable } from '../wire/turns.ts';
import { type CutRequest, findCacheState } from './cut.ts';
import { type EpochPlan, locatePlan } from './plan.ts';

export type MemoryAccount = ReturnType<typeof openAccount>;

type AllowanceRule = Pick<Config['inject'], 'costShare' | 'leastTokens'>;

/**
 * Tokens of memory text that this request may add. What the plan leaves out of each request pays for it, or the share:
 * of the cost so far, for writing it to the cache, and of the request's size, for reading it in every later request.
 * Requests only grow between cuts, so memory stays within the share (or within the price of `leastTokens`) however long
 * the conversation lasts. One prompt takes `leastTokens` at most where no cut pays, so that later ones have room.
 */
export function allowTokens(account: MemoryAccount, { costShare, leastTokens }: AllowanceRule): number {
  const { prices, receivedTokens, addedTokens } = account;
  const shared = Math.min(getBudget(account, costShare) / prices.write, costShare * receivedTokens - addedTokens);
  const most = addedTokens < 0 ? Number.POSITIVE_INFINITY : leastTokens;
  return Math.max(0, Math.min(most, Math.floor(Math.max(leastTokens - addedTokens, shared))));
}

/** What this request may cost beyond the current plan, so that the conversation stays within `share` of untouched. */
export function getBudget(account: MemoryAccount, share: number): number {
  const { untouched, saved, cold, prices, receivedTokens, addedTokens } = account;
  const price = cold ? prices.write : prices.read;
  return share * (untouched + price * receivedTokens) + saved - price * addedTokens;
}

/** Costs in tokens of uncached input. */
export function openAccount(request: CutRequest) {
  const { view, match, balance } = request;
  const tokenUsd = findModelTraits(view.model).inputPrice / 1_000_000;
  const { cold, prices } = findCacheState(request);
  return {
    /** What the earlier requests would have cost untouched, and what was saved on them: negative while memory costs. */
    untouched: (balance?.untouchedUsd ?? 0) / tokenUsd,
    saved: (balance?.savedUsd ?? 0) / tokenUsd,
    /** The prompt cache does not have this request's prefix. */
    cold: cold || match === null,
    prices,
    receivedTokens: countRequestTokens(view),
    /** Tokens that the plan adds to it, less those that it leaves out. */
    addedTokens: match === null ? 0 : countAdded(match.plan, request),
  };
}

function countAdded(plan: EpochPlan, { view }: CutRequest): number {
  const location = locatePlan(plan, view.lineage);
  if (location === null) return 0;
  const { cutEnd, rounds } = location;
  const kept = new Set(view.lineage.slice(cutEnd));
  const sent = plan.injections.filter(({ anchor }) => plan.cut === null || kept.has(anchor));
  const texts = [plan.systemBlock, plan.cut?.preamble, ...plan.rounds.map(({ preamble }) => preamble)];
  const added = [...texts, ...sent.map(({ text }) => text)];
  const dropped = [{ start: Math.min(findHeadEnd(view), cutEnd), end: cutEnd }, ...rounds];
  return (
    added.reduce((sum, text) => sum + (text ? countTokens(text) : 0), 0) -
    dropped.reduce((sum, { start, end }) => sum + sumDroppable(view.infos.slice(start, end)), 0)
  );
}
