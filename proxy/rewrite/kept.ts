import { type ConversationView, estimateTokens } from '../wire/conversation.ts';
import type { TurnSpan } from '../wire/split-turns.ts';
import type { PlanLocation } from './plan.ts';

/** Turns as a plan sends them: the rounds it drops weigh what their preamble weighs. */
export function measureSentTurns(
  { infos }: Pick<ConversationView, 'infos'>,
  turns: readonly TurnSpan[],
  at: PlanLocation | null,
): readonly TurnSpan[] {
  if (at === null || at.rounds.length === 0) return turns;
  return turns.map((turn) => {
    const own = at.rounds.find(({ start }) => start > turn.start && start < turn.end);
    if (own === undefined) return turn;
    const gone = infos.slice(own.start, own.end).reduce((total, info) => total + info.tokens, 0);
    return { ...turn, tokens: turn.tokens - gone + estimateTokens(Buffer.byteLength(own.cut.preamble)) };
  });
}
