import type { ConversationView } from '../wire/conversation.ts';
import { findFreshPrompt } from '../wire/split-turns.ts';
import { type EpochPlan, locatePlan, type Match } from './plan.ts';
import { findStripEnd, hasUnproxiedMessages } from './plan-step.ts';

/** What goes out where nothing new may be decided; null: the bytes received, which nothing of ours came before. */
export function chooseReplayPlan(view: ConversationView, match: Match | null, isKnown: boolean): EpochPlan | null {
  if (match === null && !isKnown) return null;
  const plan = match !== null && locatePlan(match.plan, view.lineage) !== null ? match.plan : null;
  if (match !== null && plan !== null && plan.broken !== 'structure') {
    if (plan.broken === false && !hasUnproxiedMessages(view, match)) return plan;
    return { ...plan, strippedThrough: findStripEnd(view, findFreshPrompt(view)) };
  }
  return stripThinkingPlan(view, match?.plan ?? null);
}

/** Nothing of ours but that all thinking is gone, which was bound to what can no longer be sent; null without any. */
export function stripThinkingPlan(view: ConversationView, lost: EpochPlan | null): EpochPlan | null {
  if (!view.infos.some((info) => info.hasThinking)) return null;
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
