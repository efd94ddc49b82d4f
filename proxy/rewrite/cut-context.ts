import { type ConversationView, estimateTokens, type MessageInfo } from '../wire/conversation.ts';
import { findModelTraits } from '../wire/models.ts';
import { findHeadEnd, type TurnSpan } from '../wire/split-turns.ts';
import type { CutContext } from './cut.ts';
import type { LocatedRoundCut, PlanUse } from './plan.ts';

export interface CutContextInput {
  readonly view: ConversationView;
  readonly turns: readonly TurnSpan[];
  readonly absorbed: number;
  /** Rounds behind them that the plan in force drops. */
  readonly rounds: readonly LocatedRoundCut[];
  /** When and how the plan in force was last used; null when that is not known. */
  readonly lastUse: PlanUse | null;
  readonly nowMs: number;
  readonly ownTokens: number;
}

const TTL_MS = { '5m': 300_000, '1h': 3_600_000 } as const;

/** What a cut would meet: a cache that is warm or cold, prices, and the size of everything. */
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
  const ttl = ttlOf(view.infos);
  const gone = plannedAway(view.infos, turns, absorbed, rounds);
  const head = view.infos.slice(0, findHeadEnd(view)).reduce((total, info) => total + info.tokens, 0);
  return {
    cold: lastUse !== null && isCold(lastUse, view, nowMs - TTL_MS[ttl]),
    prices: { read: traits.cacheRead, write: ttl === '1h' ? traits.cacheWrite1h : traits.cacheWrite5m },
    aroundTokens: head + ownTokens,
    requestTokens: estimateTokens(view.body.length) - gone + ownTokens,
    contextTokens: traits.contextTokens,
  };
}

function plannedAway(
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

/** An entry lives from the start of the request that last read it; another model or effort finds none. */
function isCold(use: PlanUse, view: ConversationView, expiredAtMs: number): boolean {
  return use.atMs < expiredAtMs || use.model !== view.model || use.effort !== view.effort;
}

/** The newest messages carry the breakpoint that the next request reads. */
function ttlOf(infos: readonly MessageInfo[]): '5m' | '1h' {
  const newest = infos.slice(-4).flatMap((info) => info.shape.blocks.flatMap((block) => block.ttls ?? []));
  return newest.includes('1h') ? '1h' : '5m';
}
