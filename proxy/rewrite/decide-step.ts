import { type ConversationView, estimateTokens } from '../wire/conversation.ts';
import { findModelTraits } from '../wire/models.ts';
import { findFreshPrompt, splitTurns, type TurnSpan } from '../wire/split-turns.ts';
import { isToolRound, type PartSpan } from '../wire/tool-rounds.ts';
import { type CutDecision, type CutInput, type CutRule, decideCut } from './cut.ts';
import { buildCutContext } from './cut-context.ts';
import { type EpochPlan, isEmptyPlan, locatePlan, type Match } from './plan.ts';
import { countEligibleTurns, measureSentTurns } from './retention.ts';
import { decideRoundCut, type RoundCutInput, type RoundsToCut, selectParts } from './tool-loop-cut.ts';

/** Why a request gets a new plan. `lost`: the plan is gone. `bypassed`: messages went upstream without the proxy. */
export type EpochReason = 'first' | 'cut' | 'lost' | 'broken' | 'bypassed';

export interface EpochStep {
  readonly kind: 'epoch';
  readonly because: EpochReason;
  /** The plan to build on; null for the first plan and when the old plan's prefix is gone. */
  readonly from: EpochPlan | null;
  /** Null when the cut does not change. */
  readonly cut: Extract<CutDecision, { kind: 'cut' }> | null;
  /** Tool rounds of the running turn to drop; null when they do not change. */
  readonly rounds: RoundsToCut | null;
  readonly strippedThrough: string | null;
}

export type Step =
  /** Replay the current plan, or pass the request through when there is none. */
  | { readonly kind: 'replay' }
  /** Keep the current plan; this prompt may recall memory. */
  | { readonly kind: 'extend'; readonly plan: EpochPlan }
  | EpochStep;

export interface StepInput {
  readonly view: ConversationView;
  readonly match: Match | null;
  /** A plan was once made for this session. */
  readonly knownSession: boolean;
  readonly isDurable: (turn: TurnSpan) => boolean;
  readonly countHeld: CutInput['countHeld'];
  readonly rule: CutRule | null;
  readonly nowMs: number;
  /** Token budget of preamble and system block. */
  readonly ownTokens: number;
  /** Token budget of the preamble of tool rounds. */
  readonly roundsTokens: number;
}

const NO_CUTS = { cut: null, rounds: null } as const;

/** What to do with one request of the main loop. */
export function decideStep(input: StepInput): Step {
  const { view, match, knownSession } = input;
  const fresh = findFreshPrompt(view);
  const current = match !== null && locatePlan(match.plan, view.lineage) !== null ? match.plan : null;
  const startEpoch = (because: EpochReason, from: EpochPlan | null, cuts: Cuts = NO_CUTS): EpochStep => {
    return { kind: 'epoch', because, from, ...cuts, strippedThrough: findStripEnd(view, fresh) };
  };
  if (current === null) {
    if (knownSession && hasThinking(view)) return startEpoch('lost', null);
    return fresh < 0 ? { kind: 'replay' } : { ...startEpoch('first', null), strippedThrough: null };
  }
  // A plan refused for a signature is valid with the thinking stripped; after any other refusal start from scratch.
  if (current.broken !== false) return startEpoch('broken', current.broken === 'thinking' ? current : null);
  if (match !== null && hasUnproxiedMessages(view, match)) return startEpoch('bypassed', current);
  if (match?.servedAt === view.lineage.length - 1) return { kind: 'replay' };
  const cuts = decideCuts(input, current, fresh);
  if (cuts.cut !== null || cuts.rounds !== null) return startEpoch('cut', current, cuts);
  return fresh < 0 ? { kind: 'replay' } : { kind: 'extend', plan: current };
}

type Cuts = Pick<EpochStep, 'cut' | 'rounds'>;

/** At a prompt, cuts whole turns. Inside a tool loop, cuts rounds of the running turn and possibly turns with them. */
function decideCuts(input: StepInput, current: EpochPlan, fresh: number): Cuts {
  const { view, rule } = input;
  if (rule === null) return NO_CUTS;
  const cutInput = buildCutInput(input, current);
  if (fresh >= 0) return { cut: acceptCut(decideCut(cutInput, rule)), rounds: null };
  if (!canCutInLoop(view)) return NO_CUTS;
  const roundInput = buildRoundInput(input, current);
  const rounds = roundInput === null ? null : decideRoundCut(roundInput, rule);
  if (rounds === null) return NO_CUTS;
  // The round cut already rewrites everything after the head, so cutting turns as well costs nothing.
  const freeRule = { ...rule, margin: 0, triggerTokens: 0, minDropShare: 0 };
  return { cut: acceptCut(decideCut(cutInput, freeRule)), rounds };
}

function acceptCut(decision: CutDecision): Cuts['cut'] {
  return decision.kind === 'cut' ? decision : null;
}

/** With manual thinking, the running turn must start with its thinking, which a cut would strip. */
function canCutInLoop(view: ConversationView): boolean {
  return isToolRound(view) && !view.manualThinking && findModelTraits(view.model).thinking !== 'manual';
}

function hasThinking({ infos }: ConversationView): boolean {
  return infos.some((info) => info.hasThinking);
}

/** Thinking in an answer that did not pass the proxy is bound to the client's own prefix, not to the plan's. */
function hasUnproxiedMessages({ infos }: ConversationView, { plan, servedAt }: Match): boolean {
  return !isEmptyPlan(plan) && infos.some((info, index) => index > servedAt + 1 && info.hasThinking);
}

/** Turns that a cut could need and that have no durable node yet; empty while the history is far from the trigger. */
export function selectTurnsToPrepare(input: StepInput): TurnSpan[] {
  const { rule, isDurable, match } = input;
  if (rule === null) return [];
  const { turns, absorbed } = buildCutInput(input, match?.plan ?? null);
  const history = turns.slice(absorbed).reduce((total, turn) => total + turn.tokens, 0);
  const trigger = rule.targetTokens > 0 ? Math.min(rule.triggerTokens, rule.targetTokens / 2) : rule.triggerTokens;
  if (history < trigger * 0.75) return [];
  return turns.slice(absorbed, countEligibleTurns(turns, rule)).filter((turn) => !isDurable(turn));
}

/** Parts of the running turn that a cut inside it could need. */
export function selectPartsToPrepare(input: StepInput): PartSpan[] {
  const { view, rule, match } = input;
  if (rule === null || !canCutInLoop(view)) return [];
  const roundInput = buildRoundInput(input, match?.plan ?? null);
  return roundInput === null ? [] : selectParts(roundInput, rule);
}

function buildCutInput(
  { view, match, isDurable, countHeld, nowMs, ownTokens }: StepInput,
  plan: EpochPlan | null,
): CutInput {
  const location = plan === null ? null : locatePlan(plan, view.lineage);
  const turns = measureSentTurns(view, splitTurns(view), location);
  const absorbed = turns.filter((turn) => turn.end <= (location?.cutEnd ?? 0)).length;
  const lastUse = match?.lastUse ?? null;
  const rounds = location?.rounds ?? [];
  return {
    turns,
    absorbed,
    isDurable,
    countHeld,
    context: buildCutContext({ view, turns, absorbed, rounds, lastUse, nowMs, ownTokens }),
  };
}

function buildRoundInput(input: StepInput, plan: EpochPlan | null): RoundCutInput | null {
  const { view, isDurable, roundsTokens } = input;
  const planTokens = estimateTokens(Buffer.byteLength(`${plan?.systemBlock ?? ''}${plan?.cut?.preamble ?? ''}`));
  const { turns, absorbed, context } = buildCutInput({ ...input, ownTokens: planTokens + roundsTokens }, plan);
  const turn = turns.at(-1);
  if (turn === undefined || absorbed === turns.length) return null;
  const location = plan === null ? null : locatePlan(plan, view.lineage);
  const absorbedEnd = location?.rounds.find(({ start }) => start > turn.start)?.end ?? 0;
  const earlierTokens = turns.slice(absorbed, -1).reduce((total, each) => total + each.tokens, 0);
  return { view, turn, absorbedEnd, isDurable, context, earlierTokens };
}

/**
 * The message up to which a new epoch strips thinking. With manual thinking, the last assistant turn keeps its own,
 * because it has to start with it; those models do not bind thinking to the prefix.
 */
export function findStripEnd(view: ConversationView, fresh: number): string | null {
  const turns = splitTurns(view);
  const running = turns.at(-1);
  if (running === undefined) return null;
  const last = fresh >= 0 ? turns.at(-2) : running;
  const end = view.manualThinking ? (last?.start ?? 0) : fresh >= 0 ? fresh : view.lineage.length;
  return end === 0 ? null : (view.lineage[end - 1] as string);
}

/** The plan to send when nothing new may be decided; null sends the received bytes. */
export function chooseReplayPlan(view: ConversationView, match: Match | null, knownSession: boolean): EpochPlan | null {
  if (match === null && !knownSession) return null;
  const plan = match !== null && locatePlan(match.plan, view.lineage) !== null ? match.plan : null;
  if (match !== null && plan !== null && plan.broken !== 'structure') {
    if (plan.broken === false && !hasUnproxiedMessages(view, match)) return plan;
    return { ...plan, strippedThrough: findStripEnd(view, findFreshPrompt(view)) };
  }
  return stripThinkingPlan(view, match?.plan ?? null);
}

/** A plan that only strips thinking, which is bound to a prefix that can no longer be sent; null without thinking. */
export function stripThinkingPlan(view: ConversationView, lost: EpochPlan | null): EpochPlan | null {
  if (!hasThinking(view)) return null;
  return {
    id: '',
    sessionId: lost?.sessionId ?? '',
    createdAtMs: 0,
    epoch: lost?.epoch ?? 0,
    cut: null,
    rounds: [],
    strippedThrough: findStripEnd(view, findFreshPrompt(view)),
    systemBlock: null,
    systemNodeIds: [],
    injections: [],
    broken: false,
  };
}
