import { type ConversationView, estimateTokens } from '../wire/conversation.ts';
import { findModelTraits } from '../wire/models.ts';
import { findFreshPrompt, splitTurns, type TurnSpan } from '../wire/split-turns.ts';
import { isToolRound, type PartSpan } from '../wire/tool-rounds.ts';
import { type CutDecision, type CutInput, type CutRule, decideCut } from './cut.ts';
import { buildCutContext, type CutContextInput } from './cut-context.ts';
import { measureSentTurns } from './kept.ts';
import { type EpochPlan, isEmptyPlan, locatePlan, type Match } from './plan.ts';
import { countEligibleTurns } from './retention.ts';
import { decideRoundCut, type RoundCutInput, type RoundsToCut, selectParts } from './tool-loop-cut.ts';

/** Why a request gets a plan other than the one in force. */
export type EpochReason = 'first' | 'cut' | 'lost' | 'broken' | 'bypassed';

export type Step =
  /** Nothing new: the plan in force is replayed, or the request passes where there is none. */
  | { readonly kind: 'replay' }
  /** The plan in force goes on; this prompt may recall. */
  | { readonly kind: 'extend'; readonly plan: EpochPlan }
  | {
      readonly kind: 'epoch';
      readonly because: EpochReason;
      /** The plan it grows from; null for a first one or where the old one's prefix is gone. */
      readonly from: EpochPlan | null;
      /** Turns absorbed from now on, where that changes. */
      readonly cut: Extract<CutDecision, { kind: 'cut' }> | null;
      /** Rounds of the running turn absorbed from now on, where that changes. */
      readonly rounds: RoundsToCut | null;
      readonly strippedThrough: string | null;
    };

export interface StepInput {
  readonly view: ConversationView;
  readonly match: Match | null;
  /** A plan was once made for this session. */
  readonly knownSession: boolean;
  readonly isDurable: (turn: TurnSpan) => boolean;
  readonly rule: CutRule | null;
  readonly nowMs: number;
  /** Most that preamble and system block take, tokens; and the preamble of rounds. */
  readonly ownTokens: number;
  readonly roundsTokens: number;
}

/** What to do about one request of the main loop. */
export function decideStep(situation: StepInput): Step {
  const { view, match, knownSession } = situation;
  const fresh = findFreshPrompt(view);
  const inForce = match !== null && locatePlan(match.plan, view.lineage) !== null ? match.plan : null;
  if (inForce === null) {
    if (knownSession && view.infos.some((info) => info.hasThinking)) {
      return { ...NEW, because: 'lost', from: null, strippedThrough: findStripEnd(view, fresh) };
    }
    return fresh < 0 ? { kind: 'replay' } : { ...NEW, because: 'first', from: null, strippedThrough: null };
  }
  if (inForce.broken !== false) {
    // What upstream refused for a signature stands with the thinking stripped; any other fault of ours goes whole.
    const from = inForce.broken === 'thinking' ? inForce : null;
    return { ...NEW, because: 'broken', from, strippedThrough: findStripEnd(view, fresh) };
  }
  if (match !== null && hasUnproxiedMessages(view, match)) {
    return { ...NEW, because: 'bypassed', from: inForce, strippedThrough: findStripEnd(view, fresh) };
  }
  if (match?.servedAt === view.lineage.length - 1) return { kind: 'replay' };
  const { cut, rounds } = cutsFor(situation, inForce, fresh);
  if (cut === null && rounds === null) return fresh < 0 ? { kind: 'replay' } : { kind: 'extend', plan: inForce };
  const strippedThrough = findStripEnd(view, fresh);
  return { kind: 'epoch', because: 'cut', from: inForce, cut, rounds, strippedThrough };
}

const NEW = { kind: 'epoch', cut: null, rounds: null } as const;

type Cuts = Pick<Extract<Step, { kind: 'epoch' }>, 'cut' | 'rounds'>;

/** Whole turns at a prompt; rounds of the running turn, and what turns may go with them, inside a tool loop. */
function cutsFor(situation: StepInput, inForce: EpochPlan, fresh: number): Cuts {
  const { view, rule } = situation;
  const none = { cut: null, rounds: null };
  if (rule === null) return none;
  const ground = groundOf(situation, inForce);
  if (fresh >= 0) return { cut: asCut(decideCut(ground, rule)), rounds: null };
  if (!mayCutInLoop(view)) return none;
  const input = roundInput(situation, inForce);
  const rounds = input === null ? null : decideRoundCut(input, rule);
  if (rounds === null) return none;
  // All behind the head is written anew in any case.
  const free = { ...rule, margin: 0, triggerTokens: 0, minDropShare: 0 };
  return { cut: asCut(decideCut(ground, free)), rounds };
}

function asCut(decision: CutDecision): Cuts['cut'] {
  return decision.kind === 'cut' ? decision : null;
}

/** Where thinking is manual, the running turn has to start with it. */
function mayCutInLoop(view: ConversationView): boolean {
  return isToolRound(view) && !view.manualThinking && findModelTraits(view.model).thinking !== 'manual';
}

/** Thinking of an answer that we did not carry is bound to what the client sent then, not to what the plan sends. */
export function hasUnproxiedMessages({ infos }: ConversationView, { plan, servedAt }: Match): boolean {
  return !isEmptyPlan(plan) && infos.some((info, index) => index > servedAt + 1 && info.hasThinking);
}

/** Turns that a cut would absorb if their nodes were durable; empty while the history is far from worth a cut. */
export function selectTurnsToPrepare(situation: StepInput): TurnSpan[] {
  const { rule, isDurable, match } = situation;
  if (rule === null) return [];
  const { turns, absorbed } = groundOf(situation, match?.plan ?? null);
  const history = turns.slice(absorbed).reduce((total, turn) => total + turn.tokens, 0);
  const enough = rule.targetTokens > 0 ? Math.min(rule.triggerTokens, rule.targetTokens / 2) : rule.triggerTokens;
  if (history < enough * 0.75) return [];
  return turns.slice(absorbed, countEligibleTurns(turns, rule)).filter((turn) => !isDurable(turn));
}

/** Parts of the running turn that a cut inside it could need. */
export function selectPartsToPrepare(situation: StepInput): PartSpan[] {
  const { view, rule, match } = situation;
  if (rule === null || !mayCutInLoop(view)) return [];
  const input = roundInput(situation, match?.plan ?? null);
  return input === null ? [] : selectParts(input, rule);
}

function groundOf({ view, match, isDurable, nowMs, ownTokens }: StepInput, plan: EpochPlan | null): CutInput {
  const at = plan === null ? null : locatePlan(plan, view.lineage);
  const turns = measureSentTurns(view, splitTurns(view), at);
  const absorbed = turns.filter((turn) => turn.end <= (at?.cutEnd ?? 0)).length;
  const lastUse = match?.lastUse ?? null;
  const scene: CutContextInput = { view, turns, absorbed, rounds: at?.rounds ?? [], lastUse, nowMs, ownTokens };
  return { turns, absorbed, isDurable, context: buildCutContext(scene) };
}

function roundInput(situation: StepInput, plan: EpochPlan | null): RoundCutInput | null {
  const { view, isDurable, roundsTokens } = situation;
  const standing = estimateTokens(Buffer.byteLength(`${plan?.systemBlock ?? ''}${plan?.cut?.preamble ?? ''}`));
  const { turns, absorbed, context: scene } = groundOf({ ...situation, ownTokens: standing + roundsTokens }, plan);
  const turn = turns.at(-1);
  if (turn === undefined || absorbed === turns.length) return null;
  const at = plan === null ? null : locatePlan(plan, view.lineage);
  const absorbedEnd = at?.rounds.find(({ start }) => start > turn.start)?.end ?? 0;
  const earlierTokens = turns.slice(absorbed, -1).reduce((total, each) => total + each.tokens, 0);
  return { view, turn, absorbedEnd, isDurable, context: scene, earlierTokens };
}

/**
 * Up to where thinking goes at the start of an epoch. Where thinking is manual, the last assistant turn keeps
 * its own: such a turn has to start with it, and these models do not bind it to what came before.
 */
export function findStripEnd(view: ConversationView, fresh: number): string | null {
  const turns = splitTurns(view);
  const running = turns.at(-1);
  if (running === undefined) return null;
  const last = fresh >= 0 ? turns.at(-2) : running;
  const end = view.manualThinking ? (last?.start ?? 0) : fresh >= 0 ? fresh : view.lineage.length;
  return end === 0 ? null : (view.lineage[end - 1] as string);
}
