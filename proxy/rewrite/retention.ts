import { type ConversationView, estimateTokens } from '../wire/conversation.ts';
import type { TurnSpan } from '../wire/split-turns.ts';
import type { PlanLocation } from './plan.ts';

/** How much of the newest part of a conversation always stays. */
export interface RetentionRule {
  readonly keepTurns: number;
  readonly keepTokens: number;
}

/**
 * How many of the first `count` turns may be cut: all but the running turn, the newest `keepTurns` complete turns, and
 * as many more as `keepTokens` needs.
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

/** Turns with the token counts that a plan sends: a preamble counts in place of the rounds it replaces. */
export function measureSentTurns(
  { infos }: Pick<ConversationView, 'infos'>,
  turns: readonly TurnSpan[],
  location: PlanLocation | null,
): readonly TurnSpan[] {
  if (location === null || location.rounds.length === 0) return turns;
  return turns.map((turn) => {
    const rounds = location.rounds.find(({ start }) => start > turn.start && start < turn.end);
    if (rounds === undefined) return turn;
    const dropped = infos.slice(rounds.start, rounds.end).reduce((total, info) => total + info.tokens, 0);
    return { ...turn, tokens: turn.tokens - dropped + estimateTokens(Buffer.byteLength(rounds.cut.preamble)) };
  });
}
