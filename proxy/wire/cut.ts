import type { TurnSpan } from './turns.ts';

export interface CutRule {
  /** History above this many tokens is worth a cut. */
  readonly triggerTokens: number;
  readonly keepTurns: number;
  readonly keepTokens: number;
  /** Least share of the history that a cut must drop. */
  readonly minDropShare: number;
}

export type CutDecision =
  | { readonly kind: 'keep'; readonly because: 'small' | 'too_few_turns' | 'not_durable' | 'too_little' }
  | {
      readonly kind: 'cut';
      /** Turns `[0, through)` are absorbed, those before `from` were already. */
      readonly through: number;
      readonly droppedTokens: number;
      readonly keptTokens: number;
    };

export interface CutInput {
  /** Every turn of the request; the last one is the prompt being asked now. */
  readonly turns: readonly TurnSpan[];
  /** Turns that the plan in force absorbs already. */
  readonly absorbed: number;
  readonly isDurable: (turn: TurnSpan) => boolean;
}

/** One leading range of whole turns, the newest left alone, and only turns that durable nodes stand for. */
export function decideCut({ turns, absorbed, isDurable }: CutInput, rule: CutRule): CutDecision {
  const history = sum(turns.slice(absorbed));
  if (history < rule.triggerTokens) return { kind: 'keep', because: 'small' };
  const eligible = eligibleThrough(turns, rule);
  if (eligible <= absorbed) return { kind: 'keep', because: 'too_few_turns' };
  let through = absorbed;
  while (through < eligible && isDurable(turns[through] as TurnSpan)) through += 1;
  if (through === absorbed) return { kind: 'keep', because: 'not_durable' };
  const droppedTokens = sum(turns.slice(absorbed, through));
  if (droppedTokens < rule.minDropShare * history) {
    return { kind: 'keep', because: through < eligible ? 'not_durable' : 'too_little' };
  }
  return { kind: 'cut', through, droppedTokens, keptTokens: history - droppedTokens };
}

/** How many leading turns may go: all but the newest `keepTurns` complete ones and `keepTokens` of them. */
export function eligibleThrough(turns: readonly TurnSpan[], rule: CutRule): number {
  let kept = 0;
  let tokens = 0;
  let through = Math.max(0, turns.length - 1);
  while (through > 0 && (kept < rule.keepTurns || tokens < rule.keepTokens)) {
    through -= 1;
    kept += 1;
    tokens += turns[through]?.tokens ?? 0;
  }
  return through;
}

function sum(turns: readonly TurnSpan[]): number {
  return turns.reduce((total, turn) => total + turn.tokens, 0);
}
