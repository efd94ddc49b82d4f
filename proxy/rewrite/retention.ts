import type { TurnSpan } from '../wire/split-turns.ts';

/** What of a conversation's newest part always stays. */
export interface RetentionRule {
  readonly keepTurns: number;
  readonly keepTokens: number;
}

/**
 * How many of the first `count` turns may go: all but the running one, the newest `keepTurns` complete ones and
 * `keepTokens` of them.
 */
export function countEligibleTurns(turns: readonly TurnSpan[], rule: RetentionRule, count = turns.length): number {
  let kept = 0;
  let tokens = 0;
  let through = Math.max(0, count - 1);
  while (through > 0 && (kept < rule.keepTurns || tokens < rule.keepTokens)) {
    through -= 1;
    kept += 1;
    tokens += turns[through]?.tokens ?? 0;
  }
  return through;
}
