import type { TurnSpan } from '../wire/split-turns.ts';
import { type CachePrices, cutCost } from './cut-cost.ts';
import { countEligibleTurns, type RetentionRule } from './retention.ts';

export interface CutRule extends RetentionRule {
  /** History above this many tokens is worth a cut. */
  readonly triggerTokens: number;
  /** Least share of the history that a cut must drop. */
  readonly minDropShare: number;
  /** A warm cut waits until the turns it drops have cost this many times what it costs; 0: never waits. */
  readonly margin: number;
  /** Share of the model's context window above which a cut waits for nothing. */
  readonly pressureShare: number;
  /** A request above this many tokens is cut as soon as it may be, however small its history; 0: none is. */
  readonly targetTokens: number;
  /** Newest rounds of a running turn that stay verbatim, and at least so many tokens of them. */
  readonly keepRounds: number;
  readonly keepRoundTokens: number;
  /** As `margin`, for cuts inside a running turn: its reasoning goes with them. */
  readonly roundMargin: number;
}

/** What is known of the prompt cache and of everything around the turns. */
export interface CutContext {
  readonly cold: boolean;
  readonly prices: CachePrices;
  /** Tokens that a cut writes anew beside the kept turns: head, preamble, system block. */
  readonly aroundTokens: number;
  /** Tokens of the whole request as it would go out uncut, and what the model takes. */
  readonly requestTokens: number;
  readonly contextTokens: number;
}

export type CutReason = 'cold' | 'paid' | 'pressure' | 'target';

export type CutDecision =
  | { readonly kind: 'keep'; readonly because: 'small' | 'too_few_turns' | 'not_durable' | 'too_little' | 'not_paid' }
  | {
      readonly kind: 'cut';
      readonly because: CutReason;
      /** Turns `[0, through)` are absorbed, those before `absorbed` were already. */
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
  readonly context: CutContext;
}

/** One leading range of whole turns, the newest left alone, and only turns that durable nodes stand for. */
export function decideCut({ turns, absorbed, isDurable, context: scene }: CutInput, rule: CutRule): CutDecision {
  const history = sum(turns.slice(absorbed));
  if (history < rule.triggerTokens && !isOverTarget(scene, rule)) return { kind: 'keep', because: 'small' };
  const eligible = countEligibleTurns(turns, rule);
  if (eligible <= absorbed) return { kind: 'keep', because: 'too_few_turns' };
  let through = absorbed;
  while (through < eligible && isDurable(turns[through] as TurnSpan)) through += 1;
  if (through === absorbed) return { kind: 'keep', because: 'not_durable' };
  const droppedTokens = sum(turns.slice(absorbed, through));
  const keptTokens = history - droppedTokens;
  if (droppedTokens < rule.minDropShare * history) {
    return { kind: 'keep', because: through < eligible ? 'not_durable' : 'too_little' };
  }
  const because = whyNow({ turns, absorbed, context: scene, keptTokens }, rule);
  if (because === null) return { kind: 'keep', because: 'not_paid' };
  return { kind: 'cut', because, through, droppedTokens, keptTokens };
}

type Moment = Omit<CutInput, 'isDurable'> & { readonly keptTokens: number };

function whyNow({ turns, absorbed, context: scene, keptTokens }: Moment, rule: CutRule): CutReason | null {
  if (scene.cold) return 'cold';
  if (isOverTarget(scene, rule)) return 'target';
  if (scene.requestTokens > rule.pressureShare * scene.contextTokens) return 'pressure';
  const rewrittenTokens = scene.aroundTokens + keptTokens;
  const cost = cutCost({ turns, absorbed, rewrittenTokens, prices: scene.prices }, rule);
  return cost.carried >= rule.margin * cost.once ? 'paid' : null;
}

function isOverTarget(scene: CutContext, rule: CutRule): boolean {
  return rule.targetTokens > 0 && scene.requestTokens > rule.targetTokens;
}

function sum(turns: readonly TurnSpan[]): number {
  return turns.reduce((total, turn) => total + turn.tokens, 0);
}
