import { beforeAbort } from '../../common/async.ts';
import type { MemorySource, ProxyLog, RecalledLine } from '../ports.ts';
import { type ConversationView, readPromptText, readRecentTexts } from '../wire/conversation.ts';
import { findHeadEnd, findTypedPrompt, splitParts, splitRounds, splitTurns, type TurnSpan } from '../wire/turns.ts';
import {
  cutsInLoop,
  keepInjections,
  mayAddSystemBlock,
  type PlanConfig,
  type PlanInput,
  type RecalledMemory,
  toLine,
  usesSystemField,
} from './build-plan.ts';
import { listUnfinishedIds } from './capture.ts';
import { type EpochPlan, locatePlan } from './plan.ts';
import type { Line } from './render.ts';

const EMPTY: RecalledMemory = {
  brief: [],
  sessionLines: [],
  library: [],
  facts: [],
  recalled: [],
  quotes: new Map(),
  isComplete: false,
};

/** Prior messages that are part of the query: a prompt such as "yes, do it" has no words of its own. */
const RECENT_MESSAGES = 4;

/** At most four times the deadline: what is late for the beginning of an epoch is not added to it later. */
const EPOCH_MS = 600;
/** A recall that takes longer than this is lost. */
const LATEST_MS = 30_000;
/** Sessions whose late recall is kept. */
const MOST_LATE = 100;

interface LateRecall {
  /** Lineage hash up to the prompt. */
  readonly anchor: string;
  /** Null while it runs. */
  lines: readonly Line[] | null;
}

export type RecallCounts = Readonly<ReturnType<LateRecalls['counts']>>;

/** Counts recalls, and keeps the one of each session that missed its deadline for the next request of its prompt. */
export class LateRecalls {
  readonly #late = new Map<string, LateRecall>();
  readonly #counts = {
    asked: 0,
    in_time: 0,
    /** Missed the deadline, sent with a later request of the same prompt. */
    late_delivered: 0,
    /** Missed the deadline and found nothing that was to be sent. */
    late_empty: 0,
    /** Missed the deadline, and the prompt had no later request that could carry it. */
    late_lost: 0,
    failed: 0,
    /** Lookups of other things that were late or failed: session context, facts, quotes. */
    others_missed: 0,
  };

  /** Recalls since the start. Those that are in none of the other counts are running past their deadline. */
  counts() {
    const waiting = [...this.#late.values()].filter(({ lines }) => lines !== null);
    // Missed the deadline; to be sent with the next request of the prompt.
    return { ...this.#counts, late_waiting: waiting.length };
  }

  /** @throws what `work` throws, and the reason of `deadline` */
  async run(sessionId: string, anchor: string, work: Promise<readonly RecalledLine[]>, deadline: AbortSignal) {
    this.#lose(sessionId);
    this.#counts.asked += 1;
    try {
      const lines = toLines(await beforeAbort(work, deadline));
      this.#counts.in_time += 1;
      return lines;
    } catch (error) {
      if (deadline.aborted) this.#keep(sessionId, anchor, work);
      else this.#counts.failed += 1;
      throw error;
    }
  }

  /** A lookup of something else was late or failed. */
  missOther(): void {
    this.#counts.others_missed += 1;
  }

  /** What a recall for a prompt of this conversation returned after its deadline. */
  ready(sessionId: string, view: ConversationView): readonly Line[] {
    const late = this.#late.get(sessionId);
    return late?.lines && view.lineage.includes(late.anchor) ? late.lines : [];
  }

  settle(sessionId: string, outcome: 'late_delivered' | 'late_empty'): void {
    if (this.#late.delete(sessionId)) this.#counts[outcome] += 1;
  }

  #keep(sessionId: string, anchor: string, work: Promise<readonly RecalledLine[]>): void {
    const late: LateRecall = { anchor, lines: null };
    this.#late.set(sessionId, late);
    const oldest = this.#late.keys().next();
    if (this.#late.size > MOST_LATE && !oldest.done) this.#lose(oldest.value);
    work.then(
      (found) => {
        if (this.#late.get(sessionId) !== late) return;
        late.lines = toLines(found);
        if (found.length === 0) this.settle(sessionId, 'late_empty');
      },
      () => {
        if (this.#late.get(sessionId) === late) this.#lose(sessionId);
      },
    );
  }

  #lose(sessionId: string): void {
    if (this.#late.delete(sessionId)) this.#counts.late_lost += 1;
  }
}

function toLines(found: readonly RecalledLine[]): Line[] {
  return found.map(({ line, score, lanes = {}, isExact = false }) => ({
    ...toLine(line),
    found: { score, lanes },
    isExact,
  }));
}

/** Late lines that the plan does not show yet. */
export function takeLateLines(lines: readonly Line[], { view, step }: PlanInput, config: PlanConfig): RecalledMemory {
  const shown = new Set(findRemainingLines(view, step, config));
  return { ...EMPTY, recalled: lines.filter(({ text }) => !shown.has(text)) };
}

/** Queries memory under one deadline. A query that fails or is late returns nothing. */
export async function lookUpMemory(
  memory: MemorySource,
  late: LateRecalls,
  { view, sessionId, step }: Pick<PlanInput, 'view' | 'sessionId' | 'step'>,
  config: PlanConfig,
  log: ProxyLog,
): Promise<RecalledMemory> {
  if (step.kind === 'epoch' && (step.because === 'broken' || cutsInLoop(view, step)))
    return lookUpQuotes(memory, late, { view, sessionId, step }, config, log);
  const deadline = AbortSignal.timeout(lookupMs(step, config));
  const projectDir = view.system.workingDirectory;
  const fresh = findTypedPrompt(view);
  const withinDeadline = createLookup(deadline, late, sessionId, log);
  const quoting = withinDeadline('quotes', quoteAbsorbed(memory, view, step));
  const needsContext = step.kind === 'extend' ? usesSystemField(config) : mayAddSystemBlock(view, step, config);
  const changes =
    fresh < 0 || !showsFactChanges(step, config)
      ? null
      : withinDeadline('facts', memory.factChanges(sessionId, projectDir, findShownText(step.plan, view)));
  const [context, recalled, quotes] = await Promise.all([
    needsContext
      ? withinDeadline('context', memory.sessionContext(sessionId, projectDir))
      : { brief: [], lines: [], library: [] },
    fresh < 0 || config.retrieval === 'off'
      ? []
      : withinDeadline(
          'recall',
          late.run(
            sessionId,
            view.lineage[fresh] as string,
            memory.recall(
              {
                sessionId,
                projectDir,
                prompt: readPromptText(view, fresh),
                recent: readRecentTexts(view, fresh, RECENT_MESSAGES),
                visibleTurns: findVisibleTurns(view, step),
                shown: new Set(findRemainingLines(view, step, config)),
                sends: createHeadSearch(view),
              },
              AbortSignal.timeout(LATEST_MS),
            ),
            deadline,
          ),
        ),
    quoting,
  ]);
  return {
    brief: context?.brief ?? [],
    sessionLines: (context?.lines ?? []).map(toLine),
    library: withoutSent(context?.library ?? [], createHeadSearch(view)),
    facts: (await changes) ?? [],
    recalled: recalled ?? [],
    quotes: quotes ?? EMPTY.quotes,
    isComplete: context !== null && recalled !== null,
  };
}

/** Only what a cut needs for its preamble. */
export async function lookUpQuotes(...given: Parameters<typeof lookUpMemory>): Promise<RecalledMemory> {
  const [memory, late, { view, sessionId, step }, config, log] = given;
  const lookUp = createLookup(AbortSignal.timeout(lookupMs(step, config)), late, sessionId, log);
  return { ...EMPTY, quotes: (await lookUp('quotes', quoteAbsorbed(memory, view, step))) ?? EMPTY.quotes };
}

/** How long the lookups of a step may take. */
export function lookupMs({ kind }: PlanInput['step'], { memoryDeadlineMs: ms }: PlanConfig): number {
  return kind === 'epoch' ? Math.max(ms, Math.min(ms * 4, EPOCH_MS)) : ms;
}

/** What is late or fails is null. */
function createLookup(deadline: AbortSignal, late: LateRecalls, sessionId: string, log: ProxyLog) {
  return <T>(lookup: 'recall' | 'context' | 'facts' | 'quotes', work: Promise<T>): Promise<T | null> =>
    beforeAbort(work, deadline).catch((error: unknown) => {
      if (lookup !== 'recall') late.missOther();
      log.warn('memory lookup failed; the request continues without it', { lookup, sessionId, error });
      return null;
    });
}

async function quoteAbsorbed(memory: MemorySource, view: ConversationView, step: PlanInput['step']) {
  const cut = step.kind === 'epoch' ? step.cut : null;
  const absorbed = cut === null ? [] : splitTurns(view).slice(0, cut.through);
  return absorbed.length === 0 ? EMPTY.quotes : memory.quotes(absorbed.map(({ endHash }) => endHash));
}

/** Without the lines that a linked memory file of the user has already. */
export function withoutSent(library: readonly string[], sends: (text: string) => boolean): readonly string[] {
  const [heading] = library;
  if (heading === undefined || !sends(heading)) return library;
  const isTitle = (line = '#'): boolean => line.startsWith('#');
  const left = library.filter((line) => isTitle(line) || !sends(line));
  const rest = left.filter((line, at) => at === 0 || !isTitle(line) || !isTitle(left[at + 1]));
  return rest.length > 1 ? rest : [];
}

/** Looks for a text in the messages that no cut removes, where Claude Code puts the user's memory files. */
function createHeadSearch(view: ConversationView): (text: string) => boolean {
  const last = view.scan.messages[findHeadEnd(view) - 1];
  const head = view.body.subarray(view.scan.messages[0]?.start ?? 0, last?.end ?? 0);
  return (text) => head.includes(JSON.stringify(text).slice(1, -1));
}

/** Turns and parts that the model still sees after this step. */
function findVisibleTurns(view: ConversationView, step: PlanInput['step']): Set<string> {
  const turns = splitTurns(view);
  const plan = step.kind === 'extend' ? step.plan : step.from;
  const cutEnd = plan === null ? 0 : (locatePlan(plan, view.lineage)?.cutEnd ?? 0);
  const from = step.kind === 'epoch' && step.cut !== null ? (turns[step.cut.through]?.start ?? 0) : cutEnd;
  const visible = turns.filter((turn) => turn.start >= from);
  const located = plan === null ? [] : (locatePlan(plan, view.lineage)?.rounds ?? []);
  const dropped = [...located, ...(step.kind === 'epoch' ? step.rounds : [])];
  // Prompts without an answer are in the newest message too, or before it with one that Claude Code wrote.
  const own = turns.slice(-2).flatMap((turn) => listUnfinishedIds(view, turn));
  return new Set([...own, ...visible.flatMap((turn) => [turn.endHash, ...findVisibleParts(view, turn, dropped)])]);
}

function findVisibleParts(
  view: ConversationView,
  turn: TurnSpan,
  dropped: readonly { readonly start: number; readonly end: number }[],
): string[] {
  const parts = splitParts(view, splitRounds(view, turn));
  const isDropped = (part: TurnSpan) => dropped.some(({ start, end }) => part.start >= start && part.end <= end);
  return parts.filter((part) => !isDropped(part)).map((part) => part.endHash);
}

/** Injected lines that stay visible. A cut replaces the preamble and the system block, so their lines do not. */
function findRemainingLines(view: ConversationView, step: PlanInput['step'], config: Pick<PlanConfig, 'retrieval'>) {
  if (step.kind === 'extend') return findInjectedLines(step.plan, view, config);
  if (step.from === null) return [];
  if (step.cut === null) return findInjectedLines(step.from, view, config);
  return keepInjections(view, step.from, step).flatMap(({ text }) => text.split('\n'));
}

/** Lines of a plan in this branch of the conversation. */
function findInjectedLines(plan: EpochPlan, view: ConversationView, config: Pick<PlanConfig, 'retrieval'>): string[] {
  const { block, since } = findShownText(plan, view);
  const preambles = [plan.cut, ...plan.rounds].flatMap((cut) => cut?.preamble.split('\n') ?? []);
  return [...preambles, ...(usesSystemField(config) ? [] : block), ...since];
}

/** An abandoned branch has injections that this one lacks. */
function findShownText({ systemBlock, injections, createdAtMs: blockMs }: EpochPlan, view: ConversationView) {
  const hashes = new Set(view.lineage);
  const shown = injections.filter(({ anchor }) => hashes.has(anchor));
  return { block: systemBlock?.split('\n') ?? [], since: shown.flatMap(({ text }) => text.split('\n')), blockMs };
}

/** The system block stays as it is within an epoch, unless each prompt rewrites it. */
function showsFactChanges(
  step: PlanInput['step'],
  config: Pick<PlanConfig, 'retrieval'>,
): step is Extract<PlanInput['step'], { kind: 'extend' }> {
  return step.kind === 'extend' && config.retrieval !== 'off' && !usesSystemField(config);
}
