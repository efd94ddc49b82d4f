import { beforeAbort, createKeyedMutex, withTimeout } from '../../common/async.ts';
import type { Problem } from '../../common/errors.ts';
import { LruMap } from '../../common/map.ts';
import { countTokens } from '../../common/text.ts';
import type { CapturedTurn } from '../../common/turn.ts';
import { findConversationRoot } from '../ledger/index.ts';
import type {
  MemorySource,
  MessagesRequest,
  PolicySource,
  RewriteOutcome,
  Rewriter,
  TranscriptSource,
} from '../ports.ts';
import {
  ConversationCache,
  type ConversationView,
  countRequestTokens,
  isStandalone,
  mayBeStandalone,
  parseRequest,
  type RequestContext,
  readSystemText,
} from '../wire/conversation.ts';
import { scanBody } from '../wire/json.ts';
import { findModelTraits } from '../wire/models.ts';
import { findFreshPrompt, findTypedPrompt, splitParts, splitRounds, splitTurns, type TurnSpan } from '../wire/turns.ts';
import {
  allowStep,
  buildPlan,
  buildSlicePlan,
  chooseReplayPlan,
  cutsAnew,
  cutsInLoop,
  decideStep,
  isCut,
  mayBeResumed,
  mayBeUnknown,
  type PlanConfig,
  type PlanInput,
  type RecalledMemory,
  roundsBudget,
  type Step,
  type StepInput,
  selectPartsToPrepare,
  selectTurnsToPrepare,
  stripThinkingPlan,
  toLine,
  usesSystemField,
} from './build-plan.ts';
import {
  captureParts,
  captureSummarizedTurns,
  captureTurns,
  captureUnfinishedTurn,
  createResponseRecorder,
  findTimes,
  type ResponseRecorder,
  type ResponseRecorderDeps,
  readTurnMark,
  type UnfinishedTurn,
} from './capture.ts';
import { type CutRule, countEligibleTurns, findLastUse, isExpired } from './cut.ts';
import {
  applyPlan,
  createPlanRecord,
  describeUse,
  type EpochPlan,
  isEmptyPlan,
  type Match,
  type RewriteResult,
  type Spliced,
  validateRewrite,
} from './plan.ts';
import { openPlanCache, type PlanCache, type PlanStore } from './plan-store.ts';
import { LateRecalls, lookUpMemory, lookUpQuotes, lookupMs, takeLateLines } from './recall.ts';
import { countHeldTurns } from './render.ts';

export { toLine } from './build-plan.ts';
export type { CutRule } from './cut.ts';
export { openPlanStore, type PlanStore } from './plan-store.ts';
export { withoutSent } from './recall.ts';
export { renderRetrieval, renderSystemBlock } from './render.ts';

/** `cut`: null where nothing is ever trimmed. */
export type RewriterConfig = PlanConfig & { readonly cut: CutRule | null };

export interface RewriterDeps
  extends Pick<ResponseRecorderDeps, 'ledger' | 'receipts' | 'subagents' | 'clock' | 'log'> {
  readonly memory: MemorySource;
  readonly plans: PlanStore;
  readonly heldSessions?: number;
  readonly policy: PolicySource;
  /** Absent where no session is resumed that was begun without the product. */
  readonly transcripts?: TranscriptSource;
  readonly config: RewriterConfig;
  readonly randomHex: (bytes: number) => string;
}

export type RunningRewriter = Awaited<ReturnType<typeof createRewriter>>;

/** @throws what the plan store throws while loading */
export async function createRewriter(deps: RewriterDeps) {
  const plans = await openPlanCache(deps.plans, deps.log, deps.heldSessions);
  const pipeline = new RewritePipeline(deps, plans);
  return {
    rewrite: pipeline.rewrite.bind(pipeline),
    replay: pipeline.replay.bind(pipeline),
    receipts: () => deps.receipts.list(),
    recalls: () => pipeline.late.counts(),
    problems: () => pipeline.problems(),
    captureUnfinished: pipeline.captureUnfinished.bind(pipeline),
    async close() {
      pipeline.captureUnfinished(() => true);
      await Promise.all([deps.plans.close(), deps.ledger.close(), deps.receipts.close()]);
    },
  };
}

/** More than the turns between the last answer and a compaction in sessions that run at once. */
const MAX_ANSWERED = 1_000;
/** Each holds the body of a request. */
const MAX_UNFINISHED = 20;
const MAX_CLIENTS = 20;
const MIN_WITHOUT_DIRECTORY = 5;
/** Upstream takes longer to read a whole history that is not in its cache, and may refuse it as too long. */
const RECOGNITION_MS = 3_000;
/** For each reading: a disk that hangs must not take all of the time from memory. */
const TRANSCRIPT_MS = 1_000;

/**
 * One request goes through these stages: parse → decide → recall → plan → splice → validate → record.
 *
 * A stage that fails ends the pipeline: the current plan is replayed with nothing new added, or the received bytes go
 * upstream when there is no plan.
 */
class RewritePipeline implements Rewriter {
  readonly #deps: RewriterDeps;
  readonly #plans: PlanCache;
  readonly #cache = new ConversationCache();
  readonly #lockSession = createKeyedMutex();
  readonly #recorder: ResponseRecorder;
  readonly late = new LateRecalls();
  readonly #answered = new LruMap<string, true>(MAX_ANSWERED);
  /** By session. */
  readonly #unfinished = new LruMap<string, UnfinishedTurn>(MAX_UNFINISHED);
  /** Keys of turns whose prompt the user did not type; only the requests of the turn itself state it. */
  readonly #untyped = new LruMap<string, true>(MAX_ANSWERED);
  /** Histories whose turns were waited for: once each, so that a disk that hangs delays few requests. */
  readonly #waitedFor = new LruMap<string, true>(MAX_ANSWERED);
  /** Per client: consecutive requests without a working directory; stays 0 after the first request with one. */
  readonly #withoutDirectory = new LruMap<string, number>(MAX_CLIENTS);

  constructor(deps: RewriterDeps, plans: PlanCache) {
    this.#deps = deps;
    this.#plans = plans;
    this.#recorder = createResponseRecorder({
      ...deps,
      memory: { captureTurns: (turns) => this.#capture(turns) },
      cache: this.#cache,
      answered: this.#answered,
      unfinished: this.#unfinished,
      saveLater: plans.saveLater,
      noteAnswer: (served, signature) => plans.index.noteAnswer(served, signature),
    });
  }

  problems(): readonly Problem[] {
    return [...this.#withoutDirectory].flatMap(([client, count]) =>
      count < MIN_WITHOUT_DIRECTORY
        ? []
        : { file: 'client', message: `${client} states no working directory, so its memories belong to no project` },
    );
  }

  async rewrite(request: MessagesRequest, signal: AbortSignal): Promise<RewriteOutcome> {
    const scan = mayBeStandalone(request.body, request.headers) ? scanBody(request.body) : null;
    if (scan !== null && isStandalone(scan, request.headers)) return this.#passStandalone(request);
    const context = parseRequest(request, this.#cache);
    if (context === null) return this.#recorder.passThrough(request);
    request.timer?.end('parse');
    this.#noteDirectory(context);
    this.#noteOrigin(context);
    this.#withholdTurnWhilePaused(context);
    await this.#noteUnfinished(context, signal);
    return this.#lockSession(context.sessionId, async () => {
      let result: RewriteResult;
      try {
        const onWait = (): void => request.extendDeadline?.(RECOGNITION_MS);
        await this.#plans.load(context.view.lineage, context.sessionId, onWait);
        result = await this.#advance(context, signal);
      } catch (error) {
        this.#deps.log.warn('memory skipped; the current plan is replayed', { requestId: request.requestId, error });
        result = this.#replayPlan(context);
      }
      return this.#recorder.toOutcome(result, !signal.aborted);
    });
  }

  replay(request: MessagesRequest): RewriteOutcome {
    try {
      const context = parseRequest(request, this.#cache);
      if (context === null) return this.#recorder.passThrough(request);
      return this.#recorder.toOutcome(this.#replayPlan(context), true);
    } catch (error) {
      this.#deps.log.error('replay failed; the original is sent', { requestId: request.requestId, error });
      return this.#recorder.passThrough(request);
    }
  }

  /** Captures the unfinished turns of sessions that may have ended. A turn that continues is captured again later. */
  captureUnfinished(isOver: (turn: UnfinishedTurn) => boolean): void {
    const { policy } = this.#deps;
    for (const unfinished of [...this.#unfinished.values()].filter(isOver)) {
      const { view, sessionId } = unfinished.context;
      this.#unfinished.delete(sessionId);
      const turn = splitTurns(view).at(-1);
      const isWithheld = turn === undefined || policy.hasWithheld(sessionId, readTurnMark(view, turn));
      // Memory leaves out what arrived during a pause; one that began later does not concern the turn.
      if (!isWithheld) this.#capture(captureUnfinishedTurn(unfinished));
    }
  }

  async #advance(context: RequestContext, signal: AbortSignal): Promise<RewriteResult> {
    if (context.request.path === 'count_tokens') return this.#replayPlan(context);
    if (context.kind === 'side') setImmediate(() => this.#captureSummarized(context));
    if (context.kind !== 'main') return (await this.#giveSlice(context, signal)) ?? this.#replayPlan(context);
    const { view } = context;
    const turns = splitTurns(view);
    const input = await this.#recognizeTurns(context, turns, signal);
    const completeTurns = findFreshPrompt(view) >= 0 ? turns.slice(0, -1) : [];
    setImmediate(() => void this.#captureComplete(context, completeTurns, input));
    const step = decideStep(input);
    context.request.timer?.end('decide');
    const result = await this.#takeStep(context, input, step, signal);
    if (result !== null) return result;
    const whole = { ...input, rule: null };
    const uncut = cutsAnew(step) ? await this.#takeStep(context, whole, decideStep(whole), signal) : null;
    return uncut ?? this.#replayPlan(context);
  }

  /** Null where the step changes nothing, or where its plan is invalid. */
  async #takeStep(context: RequestContext, input: StepInput, step: Step, signal: AbortSignal) {
    if (step.kind === 'replay') return null;
    const { memory, config, clock, randomHex } = this.#deps;
    const { view, sessionId, request } = context;
    const { timer } = request;

    const planInput = { view, sessionId, step, allowedTokens: allowStep(input, step, config) };
    const recalled = await this.#recall(context, planInput);
    timer?.end('recall');

    const seed = { createdAtMs: clock.now(), id: randomHex(16), fence: randomHex(6) };
    const plan = buildPlan(memory, { ...planInput, ...seed }, recalled, config);
    timer?.end('plan');

    const spliced = this.#splice(context, plan);
    if (spliced === null) return null;
    timer?.end('splice');

    await this.#recordPlan(context, step, plan, signal);
    timer?.end('store');
    if (isLate(planInput)) {
      const isShown = step.kind === 'extend' && plan.injections.length > step.plan.injections.length;
      this.late.settle(sessionId, isShown ? 'late_delivered' : 'late_empty');
    }
    const formerUse = input.match === null ? undefined : findLastUse(input.match, view);
    return { context, plan, spliced, decision: describeStep(view, step), cut: isCut(step), formerUse };
  }

  /**
   * Another model or version of the client may send a history in another form, which no plan matches, and a session may
   * be resumed that was begun without the product. Memory knows the turns once they are captured, so that the request
   * can be cut.
   */
  async #recognizeTurns(context: RequestContext, turns: readonly TurnSpan[], signal: AbortSignal): Promise<StepInput> {
    const seen = this.#createStepInput(context, turns);
    const resumedFromMs = mayBeResumed(seen) ? await this.#expiredSince(context, signal) : null;
    const input = { ...seen, resumedFromMs };
    const completeTurns = turns.slice(0, -1);
    if (!mayBeUnknown(input) || completeTurns.every(input.isDurable)) return input;
    const history = completeTurns.at(-1)?.endHash ?? '';
    if (this.#waitedFor.has(history)) return input;
    this.#waitedFor.set(history, true);
    context.request.extendDeadline?.(RECOGNITION_MS);
    const reading = this.#deps.transcripts?.prompts(context.sessionId) ?? Promise.resolve([]);
    const prompts = await beforeAbort(inTime(reading, TRANSCRIPT_MS), signal).catch(() => []);
    this.#captureHistory(context, completeTurns, input, findTimes(context.view, completeTurns, prompts));
    await beforeAbort(this.#deps.memory.awaitCaptures(context.sessionId), signal);
    return { ...this.#createStepInput(context, turns), resumedFromMs };
  }

  /** Null while the prompt cache may hold the last answer, and where its time is not known soon. */
  async #expiredSince({ view, sessionId, request }: RequestContext, signal: AbortSignal): Promise<number | null> {
    const { transcripts, clock } = this.#deps;
    if (transcripts === undefined) return null;
    request.extendDeadline?.(TRANSCRIPT_MS);
    const asked = transcripts.lastAnswerMs(sessionId);
    const lastMs = await beforeAbort(inTime(asked, TRANSCRIPT_MS), signal).catch(() => null);
    return lastMs !== null && isExpired(view, lastMs, clock.now()) ? lastMs : null;
  }

  async #recall(context: RequestContext, input: PlanInput): Promise<RecalledMemory> {
    const { memory, config, log } = this.#deps;
    context.request.extendDeadline?.(lookupMs(input.step, config) - config.memoryDeadlineMs);
    if (this.#disabledBy(context) !== null) return lookUpQuotes(memory, this.late, input, config, log);
    if (!isLate(input)) return lookUpMemory(memory, this.late, input, config, log);
    return takeLateLines(this.late.ready(context.sessionId, context.view), input, config);
  }

  /** Adds the facts that a subagent is subscribed to, to its first request; null where nothing is added now. */
  async #giveSlice(context: RequestContext, signal: AbortSignal): Promise<RewriteResult | null> {
    const { subagents, config, clock, randomHex, log } = this.#deps;
    const { view, sessionId } = context;
    const isFirst = !view.infos.some(({ role }) => role === 'assistant');
    if (!context.isSubagent || !isFirst || subagents === undefined) return null;
    if (this.#disabledBy(context) !== null) return null;
    if (this.#plans.index.match(view, sessionId, 'subagent') !== null) return null;
    const { workingDirectory: projectDir } = view.system;
    const work = subagents.slice({ sessionId, projectDir, system: readSystemText(view) });
    const slice = await beforeAbort(work, AbortSignal.timeout(config.memoryDeadlineMs)).catch((error: unknown) => {
      log.warn('the facts of a subagent could not be read', { sessionId, error });
      return null;
    });
    // A hook gives the same text.
    if (slice === null || view.body.includes(JSON.stringify(slice.text).slice(1, -1))) return null;
    const seed = { createdAtMs: clock.now(), id: randomHex(16), fence: randomHex(6) };
    const plan = buildSlicePlan({ view, sessionId, ...seed }, slice);
    const spliced = this.#splice(context, plan);
    if (spliced === null) return null;
    await this.#recordPlan(context, { kind: 'replay' }, plan, signal);
    return { context, plan, spliced, decision: 'facts', cut: false };
  }

  /** A plan that changes bytes is durable before its first use. Throws when a replay was sent in the meantime. */
  async #recordPlan(context: RequestContext, step: Step, plan: EpochPlan, signal: AbortSignal): Promise<void> {
    const { view, sessionId } = context;
    const { clock, log } = this.#deps;
    const record = createPlanRecord(step.kind === 'extend' ? step.plan : null, plan, describeUse(view, clock.now()));
    // Losing a record that changes no bytes costs at most a match by a shorter prefix, so it need not be durable.
    if (record.kind === 'served' || (record.kind === 'plan' && isEmptyPlan(plan)))
      return this.#plans.saveLater(sessionId, record);
    signal.throwIfAborted();
    await this.#plans.save(sessionId, record);
    // A replay was sent in the meantime. When the client left instead, nothing was sent.
    if (signal.aborted && (signal.reason as Error | undefined)?.name === 'TimeoutError') {
      const added = record.kind === 'injections' ? record.injections.length : null;
      this.#plans.saveLater(sessionId, { kind: 'unsent', planId: plan.id, added });
      throw signal.reason;
    }
    if (record.kind !== 'plan') return;
    const nodes = [plan.cut, ...plan.rounds].reduce((sum, cut) => sum + (cut?.nodeIds.length ?? 0), 0);
    log.info('epoch', { sessionId, epoch: plan.epoch, nodes });
  }

  /** The current plan; when it is lost or invalid, only the thinking is stripped that is bound to it. */
  #replayPlan(context: RequestContext): RewriteResult {
    const { view, sessionId, kind, request } = context;
    const match = kind === 'other' ? this.#matchOther(context) : this.#matchReplayed(context);
    const plan = chooseReplayPlan(view, match, kind !== 'other' && this.#isKnown(view, sessionId));
    if (plan === null) return { context, plan, spliced: null, decision: 'replay', cut: false };
    const isCurrent = plan === match?.plan;
    const spliced = this.#splice(context, plan);
    request.timer?.end('splice');
    if (spliced !== null) {
      const counts = isCurrent && request.path === 'messages';
      if (counts) this.#noteReplay(context, plan);
      const formerUse = counts ? findLastUse(match, view) : undefined;
      return { context, plan, spliced, decision: isCurrent ? 'replay' : 'healing', cut: false, formerUse };
    }
    // Also one that is invalid with its thinking stripped: an answer past the proxy may cite what the plan leaves out.
    // A fork, whose results may be cleared, does not make its parent's plan invalid.
    if (plan.id === match?.plan.id && kind === 'main')
      this.#plans.saveLater(sessionId, { kind: 'broken', planId: plan.id, broken: 'structure' });
    const stripping = stripThinkingPlan(view, plan);
    const healed = stripping === null ? null : this.#splice(context, stripping);
    return { context, plan: healed && stripping, spliced: healed, decision: 'healing', cut: false };
  }

  /** Forks read the same prompt cache and may have answers of their own; they end soon, so their uses are not written. */
  #noteReplay({ view, sessionId, kind }: RequestContext, plan: EpochPlan): void {
    const record = { kind: 'served', planId: plan.id, ...describeUse(view, this.#deps.clock.now()) } as const;
    if (kind === 'main' || plan.slice !== undefined) this.#plans.saveLater(sessionId, record);
    else this.#plans.index.apply(record);
  }

  /** A request for a summary lacks or changes the prompt or the results with which a cut came. */
  #matchReplayed({ view, sessionId, kind }: RequestContext): Match | null {
    const match = this.#matchOwnPlan(view, sessionId);
    return (kind === 'side' ? this.#plans.index.matchChanged(view, sessionId, match) : null) ?? match;
  }

  #matchOther({ view, sessionId, isSubagent }: RequestContext): Match | null {
    const slice = isSubagent ? this.#plans.index.match(view, sessionId, 'subagent') : null;
    return slice ?? this.#plans.index.match(view, sessionId, 'answered');
  }

  /** A fork continues with a copy of its parent's plan, so that additions belong to the fork. */
  #matchOwnPlan(view: ConversationView, sessionId: string): Match | null {
    const match = this.#plans.index.match(view, sessionId);
    if (match === null || match.plan.sessionId === sessionId) return match;
    const plan = { ...match.plan, id: this.#deps.randomHex(16), sessionId };
    const served = view.lineage[match.servedAt] as string;
    for (const use of match.uses) this.#plans.saveLater(sessionId, { kind: 'plan', plan, served, use });
    return { ...match, plan };
  }

  #createStepInput(context: RequestContext, turns: readonly TurnSpan[]): StepInput {
    const { view, sessionId } = context;
    const { memory, config, clock, ledger } = this.#deps;
    const match = this.#matchOwnPlan(view, sessionId);
    const kept = config.cut === null ? 0 : countEligibleTurns(turns, config.cut);
    const parts = turns.slice(kept).flatMap((turn) => splitParts(view, splitRounds(view, turn)));
    const durable = memory.nodesCovering([...turns, ...parts].map((span) => span.endHash));
    return {
      view,
      match,
      knownSession: this.#isKnown(view, sessionId),
      resumedFromMs: null,
      isDurable: (turn) => durable.has(turn.endHash),
      countHeld: (span) => {
        const lines = (turn: TurnSpan) => memory.lines(durable.get(turn.endHash) ?? []).map(toLine);
        const held = span.map((turn) => ({ tokens: turn.tokens, lines: lines(turn) }));
        return countHeldTurns(held, config.preambleTokens);
      },
      rule: chooseCutRule(config.cut, this.#disabledBy(context), view),
      nowMs: clock.now(),
      balance: ledger.conversation(sessionId)?.balance ?? null,
      ownTokens: countTokens(match?.plan.systemBlock ?? ''),
      roundsTokens: roundsBudget(config),
      hasLateLines: !usesSystemField(config) && this.late.ready(sessionId, view).length > 0,
    };
  }

  /** The session was rewritten before, so its thinking may be bound to our prefix. The ledger outlives the plans. */
  #isKnown(view: ConversationView, sessionId: string): boolean {
    return (
      this.#plans.index.wasRewritten(sessionId) || this.#deps.ledger.wasRewritten(sessionId, findConversationRoot(view))
    );
  }

  /** Why nothing new is added: the user opted out here, upstream refused a rewritten request, or memory costs too much. */
  #disabledBy({ view, sessionId }: RequestContext): 'user' | 'refusal' | 'loss' | null {
    const { policy, ledger } = this.#deps;
    return policy.of(view.system.workingDirectory).adds ? ledger.disabledBy(sessionId) : 'user';
  }

  /** Detects a version that states the directory in an unknown place. A session with its own system prompt states none. */
  #noteDirectory({ view, kind, request }: RequestContext): void {
    const client = (request.headers['user-agent'] ?? '').split(' ')[0] ?? '';
    const count = this.#withoutDirectory.get(client);
    if (kind !== 'main' || !client.startsWith('claude-cli/') || count === 0) return;
    this.#withoutDirectory.set(client, view.system.workingDirectory === null ? (count ?? 0) + 1 : 0);
  }

  #noteOrigin({ view, kind }: RequestContext): void {
    const turn = kind === 'main' && view.system.isUntyped ? splitTurns(view).at(-1) : undefined;
    if (turn !== undefined) this.#untyped.set(turn.key, true);
  }

  /** After `/clear`, Claude Code starts a new session, whose first prompt may ask about the interrupted turn. */
  async #noteUnfinished(context: RequestContext, signal: AbortSignal): Promise<void> {
    const { sessionId, view, kind, request } = context;
    const { memory, config, clock } = this.#deps;
    if (kind !== 'main' || request.path !== 'messages') return;
    const isFirst = !this.#unfinished.has(sessionId) && !view.infos.some(({ role }) => role === 'assistant');
    const { workingDirectory } = view.system;
    const aborted = [...this.#unfinished.values()].filter(
      (turn) => isFirst && turn.isAborted && turn.context.view.system.workingDirectory === workingDirectory,
    );
    this.#unfinished.set(sessionId, { context, answer: null, isAborted: false, sinceMs: clock.now() });
    if (aborted.length === 0) return;
    this.captureUnfinished((turn) => aborted.includes(turn));
    const captures = aborted.map(({ context: each }) => memory.awaitCaptures(each.sessionId));
    await beforeAbort(inTime(Promise.all(captures), config.memoryDeadlineMs), signal).catch(() => undefined);
  }

  #capture(turns: readonly CapturedTurn[]): void {
    this.#deps.memory.captureTurns(
      turns.map((turn) => (this.#untyped.has(turn.key) ? { ...turn, untyped: true } : turn)),
    );
  }

  /** A turn that starts while capture is paused is never captured, even after the pause. */
  #withholdTurnWhilePaused({ view, kind, sessionId }: RequestContext): void {
    const { policy } = this.#deps;
    if (kind !== 'main' || policy.of(view.system.workingDirectory).captures) return;
    const turn = splitTurns(view).at(-1);
    if (turn !== undefined) policy.withhold(turn.key, sessionId, readTurnMark(view, turn));
  }

  /** Null where the plan does not fit, or adds an error; one that the received request has as well is not its own. */
  #splice(context: RequestContext, plan: EpochPlan): Spliced | null {
    const spliced = applyPlan(context.view, plan);
    const error = spliced === null ? null : validateRewrite(context, plan, spliced, this.#cache);
    if (error === null) return spliced;
    this.#deps.log.error('rewritten request is invalid; the plan is left out', { refusal: error });
    return null;
  }

  /** Parses a standalone request only when its response arrives, so that upstream does not wait for it. */
  #passStandalone(request: MessagesRequest): RewriteOutcome {
    const onResponse: RewriteOutcome['onResponse'] = (response) => this.replay(request).onResponse(response);
    return { body: request.body, rewritten: false, onResponse };
  }

  /** Off the request path: sends the running turns that a summary replaces to memory. */
  #captureSummarized(request: RequestContext): void {
    const { policy, clock } = this.#deps;
    const { view, sessionId } = request;
    if (!policy.of(view.system.workingDirectory).captures) return;
    const turns = captureSummarizedTurns(view, { sessionId, atMs: clock.now() });
    if (turns.length > 0) this.#unfinished.delete(sessionId);
    // Claude Code keeps the last answer, and asks for a summary of what is before it.
    this.#capture(turns.filter((turn) => !this.#answered.has(turn.key)));
  }

  /** Off the request path. Turns that went past this process, such as in a pause, have their time in the transcript. */
  async #captureComplete(context: RequestContext, turns: readonly TurnSpan[], input: StepInput): Promise<void> {
    const isUnseen = (turn: TurnSpan): boolean => !input.isDurable(turn) && !this.#answered.has(turn.key);
    const unseen = turns.filter(isUnseen).map(({ endHash }) => `time of ${endHash}`);
    const isRead = unseen.every((name) => this.#waitedFor.has(name));
    const reading = isRead ? undefined : this.#deps.transcripts?.prompts(context.sessionId);
    if (reading === undefined) return this.#captureHistory(context, turns, input);
    for (const name of unseen) this.#waitedFor.set(name, true);
    const prompts = await inTime(reading, RECOGNITION_MS).catch(() => []);
    this.#captureHistory(context, turns, input, findTimes(context.view, turns, prompts));
  }

  /** Sends complete turns to memory, repeatedly until a node represents each of them. */
  #captureHistory(
    request: RequestContext,
    turns: readonly TurnSpan[],
    input: StepInput,
    times: ReadonlyMap<string, number> = new Map(),
  ): void {
    const { policy, memory, clock } = this.#deps;
    const { view, sessionId } = request;
    if (!policy.of(view.system.workingDirectory).captures) return;
    const context = { sessionId, atMs: input.resumedFromMs ?? clock.now() };
    const isWithheld = (turn: TurnSpan): boolean => policy.hasWithheld(sessionId, readTurnMark(view, turn));
    const missing = turns.filter((turn) => !input.isDurable(turn) && !isWithheld(turn));
    const captured = captureTurns(view, missing, context);
    this.#capture(captured.map((turn) => ({ ...turn, atMs: times.get(turn.turnId) ?? turn.atMs })));
    const parts = selectPartsToPrepare(input);
    this.#capture(captureParts(view, parts, context));
    const needed = [...(turns.length === 0 ? [] : selectTurnsToPrepare(input)), ...parts];
    if (needed.length === 0) return;
    const turnIds = needed.map((turn) => turn.endHash);
    memory.prepareNodes(sessionId, turnIds);
  }
}

/**
 * After a loss a cut has to be free, as with a cold cache: it makes the loss good. After a refusal nothing is cut unless
 * the whole history exceeds the context window and would be refused too.
 */
function chooseCutRule(rule: CutRule | null, disabledBy: 'user' | 'refusal' | 'loss' | null, view: ConversationView) {
  if (rule === null || disabledBy === null) return rule;
  if (disabledBy === 'user') return null;
  if (disabledBy === 'refusal') {
    const mostTokens = rule.pressureShare * findModelTraits(view.model).contextTokens;
    return countRequestTokens(view) < mostTokens ? null : rule;
  }
  return { ...rule, margin: Math.max(1, rule.margin), lossShare: 0, targetTokens: 0 };
}

/** Not `AbortSignal.any` with a timeout: Node 20 may collect the timeout, which then never fires. */
const inTime = <T>(work: Promise<T>, ms: number): Promise<T> => withTimeout(work, ms, () => new Error('late'));

/** Only a late recall extends a plan inside a tool loop. */
const isLate = ({ view, step }: PlanInput): boolean => step.kind === 'extend' && findTypedPrompt(view) < 0;

function describeStep(view: ConversationView, step: Step): string {
  if (step.kind !== 'epoch') return step.kind === 'extend' ? 'recall' : 'replay';
  const because = step.cut?.because ?? step.rounds[0]?.because;
  if (because === undefined) return `epoch: ${step.because}`;
  return `${cutsInLoop(view, step) ? 'cut in a tool loop' : 'cut'}: ${because}`;
}
