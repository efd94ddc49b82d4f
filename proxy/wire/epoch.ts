import { type CutDecision, type CutInput, type CutRule, decideCut } from './cut.ts';
import { eligibleThrough } from './keep.ts';
import { type EpochPlan, isEmptyPlan, locate, type Match } from './plan.ts';
import { type SceneInput, sceneOf } from './scene.ts';
import { freshPromptAt, splitTurns, type TurnSpan } from './turns.ts';
import type { ConversationView } from './view.ts';

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
      readonly strippedThrough: string | null;
    };

export interface Situation {
  readonly view: ConversationView;
  readonly match: Match | null;
  /** A plan was once made for this session. */
  readonly knownSession: boolean;
  readonly isDurable: (turn: TurnSpan) => boolean;
  readonly rule: CutRule | null;
  readonly nowMs: number;
  /** Most that preamble and system block take, tokens. */
  readonly ownTokens: number;
}

/** What to do about one request of the main loop. */
export function decideStep(situation: Situation): Step {
  const { view, match, knownSession } = situation;
  const fresh = freshPromptAt(view);
  const inForce = match !== null && locate(match.plan, view.lineage) !== null ? match.plan : null;
  if (inForce === null) {
    if (knownSession && view.infos.some((info) => info.hasThinking)) {
      return { kind: 'epoch', because: 'lost', from: null, cut: null, strippedThrough: stripThrough(view, fresh) };
    }
    return fresh < 0
      ? { kind: 'replay' }
      : { kind: 'epoch', because: 'first', from: null, cut: null, strippedThrough: null };
  }
  if (inForce.broken !== false) {
    // What upstream refused for a signature stands with the thinking stripped; any other fault of ours goes whole.
    const from = inForce.broken === 'thinking' ? inForce : null;
    return { kind: 'epoch', because: 'broken', from, cut: null, strippedThrough: stripThrough(view, fresh) };
  }
  if (match !== null && wentPast(view, match)) {
    return { kind: 'epoch', because: 'bypassed', from: inForce, cut: null, strippedThrough: stripThrough(view, fresh) };
  }
  if (fresh < 0 || match?.servedAt === view.lineage.length - 1) return { kind: 'replay' };
  const cut = situation.rule === null ? null : decideCut(cutInput(situation, inForce), situation.rule);
  if (cut?.kind !== 'cut') return { kind: 'extend', plan: inForce };
  return { kind: 'epoch', because: 'cut', from: inForce, cut, strippedThrough: stripThrough(view, fresh) };
}

/** Thinking of an answer that we did not carry is bound to what the client sent then, not to what the plan sends. */
function wentPast({ infos }: ConversationView, { plan, servedAt }: Match): boolean {
  return !isEmptyPlan(plan) && infos.some((info, index) => index > servedAt + 1 && info.hasThinking);
}

/** Turns that a cut would absorb if their nodes were durable; empty while the history is far from worth a cut. */
export function turnsToPrepare({ view, match, rule, isDurable }: Situation): TurnSpan[] {
  if (rule === null) return [];
  const turns = splitTurns(view);
  const absorbed = absorbedTurns(turns, match?.plan ?? null, view);
  const history = turns.slice(absorbed).reduce((total, turn) => total + turn.tokens, 0);
  if (history < rule.triggerTokens * 0.75) return [];
  return turns.slice(absorbed, eligibleThrough(turns, rule)).filter((turn) => !isDurable(turn));
}

function cutInput({ view, match, isDurable, nowMs, ownTokens }: Situation, plan: EpochPlan): CutInput {
  const turns = splitTurns(view);
  const absorbed = absorbedTurns(turns, plan, view);
  const scene: SceneInput = { view, turns, absorbed, lastUse: match?.lastUse ?? null, nowMs, ownTokens };
  return { turns, absorbed, isDurable, scene: sceneOf(scene) };
}

function absorbedTurns(turns: readonly TurnSpan[], plan: EpochPlan | null, view: ConversationView): number {
  const cutEnd = plan === null ? 0 : (locate(plan, view.lineage)?.cutEnd ?? 0);
  return turns.filter((turn) => turn.end <= cutEnd).length;
}

/**
 * Up to where thinking goes at the start of an epoch. Where thinking is manual, the last assistant turn keeps
 * its own: such a turn has to start with it, and these models do not bind it to what came before.
 */
export function stripThrough(view: ConversationView, fresh: number): string | null {
  const turns = splitTurns(view);
  const running = turns.at(-1);
  if (running === undefined) return null;
  const last = fresh >= 0 ? turns.at(-2) : running;
  const end = view.manualThinking ? (last?.start ?? 0) : fresh >= 0 ? fresh : view.lineage.length;
  return end === 0 ? null : (view.lineage[end - 1] as string);
}
