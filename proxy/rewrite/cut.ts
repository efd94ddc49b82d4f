import type { TurnSpan } from '../wire/split-turns.ts';
import { type CachePrices, cutCost } from './cut-cost.ts';
import { countEligibleTurns, type RetentionRule } from './retention.ts';

export interface CutRule extends RetentionRule {
  /** Minimum tokens of history for a cut. */
  readonly triggerTokens: number;
  /** Minimum share of the history that a cut must drop. */
  readonly minDropShare: number;
  /** With a warm cache, cut once carrying the droppable turns has cost this many times the cut; 0 never waits. */
  readonly margin: number;
  /** Share of the model's context window above which a cut does not wait. */
  readonly pressureShare: number;
  /** Cut as soon as a request exceeds this many tokens, even with a small history; 0 disables it. */
  readonly targetTokens: number;
  /** Newest rounds of a running turn that stay verbatim, and the minimum of their tokens. */
  readonly keepRounds: number;
  readonly keepRoundTokens: number;
  /** As `margin`, for cuts inside a running turn, which also lose its reasoning. */
  readonly roundMargin: number;
}

/** The state of the prompt cache and the size of everything around the turns. */
export interface CutContext {
  readonly cold: boolean;
  readonly prices: CachePrices;
  /** Tokens that a cut writes again in addition to the kept turns: head, preamble, system block. */
  readonly aroundTokens: number;
  /** Tokens of the whole request without a cut, and of the model's context window. */
  readonly requestTokens: number;
  readonly contextTokens: number;
}

export type CutReason = 'cold' | 'paid' | 'pressure' | 'target';

export type KeepReason = 'small' | 'too_few_turns' | 'not_durable' | 'too_much_state' | 'too_little' | 'not_paid';

export type CutDecision =
  | { readonly kind: 'keep'; readonly because: KeepReason }
  | {
      readonly kind: 'cut';
      readonly because: CutReason;
      /** Turns `[0, through)` are absorbed; those before `absorbed` already were. */
      readonly through: number;
      readonly droppedTokens: number;
      readonly keptTokens: number;
    };

export interface CutInput {
  /** Every turn of the request; the last one is the current prompt. */
  readonly turns: readonly TurnSpan[];
  /** Turns that the current plan already absorbs. */
  readonly absorbed: number;
  readonly isDurable: (turn: TurnSpan) => boolean;
  /** Of these leading turns, those whose state a preamble can hold, and its tokens beyond the preamble's budget. */
  readonly countHeld: (turns: readonly TurnSpan[]) => HeldTurns;
  readonly context: CutContext;
}

export interface HeldTurns {
  readonly turns: number;
  readonly extraTokens: number;
}

/**
 * A cut is one leading range of whole turns, without the newest, and only of turns that durable nodes represent and
 * whose decisions, open items and values the preamble can hold.
 */
export function decideCut(input: CutInput, rule: CutRule): CutDecision {
  const { turns, absorbed, isDurable, context: scene } = input;
  const history = sumTokens(turns.slice(absorbed));
  if (history < rule.triggerTokens && !isOverTarget(scene, rule)) return { kind: 'keep', because: 'small' };
  const eligible = countEligibleTurns(turns, rule);
  if (eligible <= absorbed) return { kind: 'keep', because: 'too_few_turns' };
  let through = absorbed;
  while (through < eligible && isDurable(turns[through] as TurnSpan)) through += 1;
  if (through === absorbed) return { kind: 'keep', because: 'not_durable' };
  const whole = decideRange(input, { through, tooFew: through < eligible ? 'not_durable' : 'too_little' }, rule);
  if (whole.kind === 'keep') return whole;
  // Reading nodes takes time, so only a cut that is due does it.
  const held = input.countHeld(turns.slice(0, through));
  if (held.turns <= absorbed) return { kind: 'keep', because: 'too_much_state' };
  const context = { ...scene, aroundTokens: scene.aroundTokens + held.extraTokens };
  return decideRange({ ...input, context }, { through: held.turns, tooFew: 'too_much_state' }, rule);
}

function decideRange(
  { turns, absorbed, context }: CutInput,
  { through, tooFew }: { readonly through: number; readonly tooFew: KeepReason },
  rule: CutRule,
): CutDecision {
  const history = sumTokens(turns.slice(absorbed));
  const droppedTokens = sumTokens(turns.slice(absorbed, through));
  const keptTokens = history - droppedTokens;
  if (droppedTokens < rule.minDropShare * history) return { kind: 'keep', because: tooFew };
  const because = findReason({ turns, absorbed, context, keptTokens }, rule);
  if (because === null) return { kind: 'keep', because: 'not_paid' };
  return { kind: 'cut', because, through, droppedTokens, keptTokens };
}

type ReasonInput = Omit<CutInput, 'isDurable' | 'countHeld'> & { readonly keptTokens: number };

function findReason({ turns, absorbed, context: scene, keptTokens }: ReasonInput, rule: CutRule): CutReason | null {
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

function sumTokens(turns: readonly TurnSpan[]): number {
  return turns.reduce((total, turn) => total + turn.tokens, 0);
}
