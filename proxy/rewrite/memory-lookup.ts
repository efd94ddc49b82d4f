import type { MemorySource, ProxyLog, RecalledLine } from '../ports.ts';
import type { ConversationView } from '../wire/conversation.ts';
import { readMessageText, readRecentTexts } from '../wire/message-text.ts';
import { findFreshPrompt, splitTurns, type TurnSpan } from '../wire/split-turns.ts';
import { splitParts, splitRounds } from '../wire/tool-rounds.ts';
import {
  keptInjections,
  mayAddSystemBlock,
  type PlanConfig,
  type PlanInput,
  type RecalledMemory,
  toLine,
  usesSystemField,
} from './form-plan.ts';
import { type Line, recallsInRequest } from './injected-text.ts';
import { type EpochPlan, locatePlan } from './plan.ts';
import type { Step } from './plan-step.ts';

/** Nothing to say. */
export const EMPTY: RecalledMemory = { brief: [], sessionLines: [], recalled: [], isComplete: false };

/** Asks memory under the deadline; whatever is late or fails is left out. */
export async function lookUpMemory(
  memory: MemorySource,
  { view, sessionId, step }: PlanInput,
  config: PlanConfig,
  log: ProxyLog,
): Promise<RecalledMemory> {
  if (step.kind === 'epoch' && (step.because === 'broken' || step.rounds !== null)) return EMPTY;
  const deadline = AbortSignal.timeout(config.memoryDeadlineMs);
  const projectDir = view.system.workingDirectory;
  const fresh = findFreshPrompt(view);
  const wantsStanding = step.kind === 'extend' ? usesSystemField(config) : mayAddSystemBlock(view, step, config);
  const standing = wantsStanding
    ? memory.sessionContext(sessionId, projectDir)
    : Promise.resolve({ brief: [], lines: [] });
  const recalled =
    fresh < 0 || !recallsInRequest(config.retrieval)
      ? Promise.resolve([])
      : memory.recall(
          {
            sessionId,
            projectDir,
            prompt: readMessageText(view, fresh),
            recent: readRecentTexts(view, fresh, 4),
            visibleTurns: visibleTurns(view, step),
            shown: new Set(linesThatStay(view, step, config)),
          },
          deadline,
        );
  const late = (error: unknown): null => {
    log.warn('memory was late or failed; the request goes on without it', { sessionId, error });
    return null;
  };
  const [has, hits] = await Promise.all([
    withDeadline(standing, deadline).catch(late),
    withDeadline(recalled, deadline).catch(late),
  ]);
  return {
    brief: has?.brief ?? [],
    sessionLines: (has?.lines ?? []).map(toLine),
    recalled: (hits ?? []).map(asRecalled),
    isComplete: has !== null && hits !== null,
  };
}

function visibleTurns(view: ConversationView, step: Exclude<Step, { kind: 'replay' }>): Set<string> {
  const turns = splitTurns(view);
  const plan = step.kind === 'extend' ? step.plan : step.from;
  const cutEnd = plan === null ? 0 : (locatePlan(plan, view.lineage)?.cutEnd ?? 0);
  const from = step.kind === 'epoch' && step.cut !== null ? (turns[step.cut.through]?.start ?? 0) : cutEnd;
  const shown = turns.filter((turn) => turn.start >= from);
  return new Set(shown.flatMap((turn) => [turn.endHash, ...shownParts(view, turn, plan)]));
}

function shownParts(view: ConversationView, turn: TurnSpan, plan: EpochPlan | null): string[] {
  const parts = splitParts(view, splitRounds(view, turn));
  const gone = parts.length === 0 || plan === null ? [] : (locatePlan(plan, view.lineage)?.rounds ?? []);
  const isGone = (part: TurnSpan): boolean => gone.some(({ start, end }) => part.start >= start && part.end <= end);
  return parts.filter((part) => !isGone(part)).map((part) => part.endHash);
}

/** A cut puts a new preamble and a new system block in the place of the old: what those leave out is shown no more. */
function linesThatStay(
  view: ConversationView,
  step: Exclude<Step, { kind: 'replay' }>,
  config: Pick<PlanConfig, 'retrieval'>,
): string[] {
  if (step.kind === 'extend') return shownLines(step.plan, view, config);
  if (step.from === null) return [];
  if (step.cut === null) return shownLines(step.from, view, config);
  return keptInjections(view, step.from, step).flatMap(({ text }) => text.split('\n'));
}

/** What the model sees of ours already; a branch that was left holds injections that this one does not. */
function shownLines(plan: EpochPlan, view: ConversationView, config: Pick<PlanConfig, 'retrieval'>): string[] {
  const here = new Set(view.lineage);
  const injected = plan.injections.filter((injection) => here.has(injection.anchor));
  const system = usesSystemField(config) ? null : plan.systemBlock;
  const preambles = [plan.cut, ...plan.rounds].map((cut) => cut?.preamble);
  const texts = [...preambles, system, ...injected.map((injection) => injection.text)];
  return texts.flatMap((text) => text?.split('\n') ?? []);
}

function asRecalled({ line, score, lanes = {}, isExact = false }: RecalledLine): Line {
  return { ...toLine(line), found: { score, lanes }, isExact };
}

function withDeadline<T>(work: Promise<T>, deadline: AbortSignal): Promise<T> {
  return Promise.race([
    work,
    new Promise<never>((_resolve, reject) => {
      deadline.addEventListener('abort', () => reject(deadline.reason), { once: true });
    }),
  ]);
}
