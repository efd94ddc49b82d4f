import type { TurnSpan } from '../wire/split-turns.ts';
import { countEligibleTurns, type RetentionRule } from './retention.ts';

/** Prices of a cached token relative to an uncached one. */
export interface CachePrices {
  readonly read: number;
  readonly write: number;
}

/** In tokens of uncached input. */
export interface CutCost {
  /** Writing the kept prompt to the cache again instead of reading it. */
  readonly once: number;
  /** What reading the droppable turns has cost since the last cut. */
  readonly carried: number;
}

export interface CutCostInput {
  readonly turns: readonly TurnSpan[];
  readonly absorbed: number;
  /** Tokens that a cut writes again: head, preamble, kept turns. */
  readonly rewrittenTokens: number;
  readonly prices: CachePrices;
}

/**
 * The remaining length of a conversation is unknown. Cutting once the carried cost reaches the price of a cut costs at
 * most twice the optimum in hindsight, and for a history that grows steadily it is the optimal period: with growth g
 * per request and price C, C/m + r·g·m/2 per request is minimal where r·g·m²/2 = C.
 * Source: ski rental, Karlin, Manasse, Rudolph, Sleator 1988; economic order quantity, Harris 1913.
 */
export function cutCost({ turns, absorbed, rewrittenTokens, prices }: CutCostInput, rule: RetentionRule): CutCost {
  const upTo: number[] = [0];
  for (const turn of turns) upTo.push((upTo.at(-1) as number) + turn.tokens);
  let carried = 0;
  for (let index = absorbed; index < turns.length; index += 1) {
    const through = Math.max(absorbed, countEligibleTurns(turns, rule, index + 1));
    const droppable = (upTo[through] as number) - (upTo[absorbed] as number);
    carried += prices.read * droppable * (turns[index] as TurnSpan).requests;
  }
  return { once: (prices.write - prices.read) * rewrittenTokens, carried };
}
