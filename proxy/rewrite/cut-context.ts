import { type ConversationView, estimateTokens, type MessageInfo } from '../wire/conversation.ts';
import { findModelTraits } from '../wire/models.ts';
import { findHeadEnd, type TurnSpan } from '../wire/split-turns.ts';
import type { CutContext } from './cut.ts';
import type { LocatedRoundCut, PlanUse } from './plan.ts';

export interface CutContextInput {
  readonly view: ConversationView;
  readonly turns: readonly TurnSpan[];
  readonly absorbed: number;
  /** Tool rounds after the cut that the current plan drops. */
  readonly rounds: readonly LocatedRoundCut[];
  /** The last use of the current plan; null when unknown. */
  readonly lastUse: PlanUse | null;
  readonly nowMs: number;
  readonly ownTokens: number;
}

const TTL_MS = { '5m': 300_000, '1h': 3_600_000 } as const;

/** Cache state, prices and sizes for a cut decision. */
export function buildCutContext({
  view,
  turns,
  absorbed,
  rounds,
  lastUse,
  nowMs,
  ownTokens,
}: CutContextInput): CutContext {
  const traits = findModelTraits(view.model);
  const ttl = findTtl(view.infos);
  const dropped = countDroppedTokens(view.infos, turns, absorbed, rounds);
  const head = view.infos.slice(0, findHeadEnd(view)).reduce((total, info) => total + info.tokens, 0);
  return {
    cold: lastUse !== null && isCold(lastUse, view, nowMs - TTL_MS[ttl]),
    prices: { read: traits.cacheRead, write: ttl === '1h' ? traits.cacheWrite1h : traits.cacheWrite5m },
    aroundTokens: head + ownTokens,
    requestTokens: estimateTokens(view.body.length) - dropped + ownTokens,
    contextTokens: traits.contextTokens,
  };
}

function countDroppedTokens(
  infos: readonly MessageInfo[],
  turns: readonly TurnSpan[],
  absorbed: number,
  rounds: readonly LocatedRoundCut[],
): number {
  const first = turns[0]?.start ?? 0;
  const end = absorbed === 0 ? first : (turns[absorbed - 1]?.end ?? first);
  const ranges = [{ start: first, end }, ...rounds];
  return ranges.reduce((total, range) => {
    return total + infos.slice(range.start, range.end).reduce((sum, info) => sum + info.tokens, 0);
  }, 0);
}

/** A cache entry's lifetime starts with the request that last read it; another model or effort misses it. */
function isCold(use: PlanUse, view: ConversationView, expiredAtMs: number): boolean {
  return use.atMs < expiredAtMs || use.model !== view.model || use.effort !== view.effort;
}

/** The newest messages carry the cache breakpoint that the next request reads. */
function findTtl(infos: readonly MessageInfo[]): '5m' | '1h' {
  const newest = infos.slice(-4).flatMap((info) => info.shape.blocks.flatMap((block) => block.ttls ?? []));
  return newest.includes('1h') ? '1h' : '5m';
}
