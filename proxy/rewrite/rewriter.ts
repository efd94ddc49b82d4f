import type { Clock } from '../../common/async.ts';
import { createKeyedMutex } from '../../common/async.ts';
import { type CostLedger, findConversationRoot, openCostLedger } from '../ledger/index.ts';
import { createMemoryReceipts } from '../ledger/receipt-store.ts';
import { openReceipts, type Receipts } from '../ledger/receipts.ts';
import { createMemoryLedger } from '../ledger/store.ts';
import type { ConsentSource, MemorySource, MessagesRequest, ProxyLog, RewriteOutcome, Rewriter } from '../ports.ts';
import { isStandalone, mayBeStandalone } from '../wire/classify.ts';
import { ConversationCache, type ConversationView } from '../wire/conversation.ts';
import { scanBody } from '../wire/json-scanner.ts';
import { type Spliced, splice } from '../wire/splice.ts';
import { findFreshPrompt, splitTurns, type TurnSpan } from '../wire/split-turns.ts';
import { splitParts, splitRounds } from '../wire/tool-rounds.ts';
import { createResponseRecorder } from './after-response.ts';
import type { CutRule } from './cut.ts';
import { buildPlan, type PlanConfig, roundsBudget } from './form-plan.ts';
import { EMPTY, lookUpMemory } from './memory-lookup.ts';
import type { EpochPlan, Match, PlanRecord } from './plan.ts';
import { openPlanCache } from './plan-cache.ts';
import { changesNoBytes, createPlanRecord, describeUse } from './plan-record.ts';
import { decideStep, type Step, type StepInput, selectPartsToPrepare, selectTurnsToPrepare } from './plan-step.ts';
import type { PlanStore } from './plan-store.ts';
import type { Receipt } from './receipt.ts';
import { chooseReplayPlan, stripThinkingPlan } from './replay-plan.ts';
import { parseRequest, type RequestContext, type RewriteResult } from './request-context.ts';
import { checkReceived, selfCheck } from './self-check.ts';
import { captureParts, captureTurns } from './turn-capture.ts';

export interface RewriterConfig extends PlanConfig {
  /** Null: nothing is ever trimmed. */
  readonly cut: CutRule | null;
}

export interface RewriterDeps {
  readonly memory: MemorySource;
  readonly plans: PlanStore;
  /** Sessions whose plans stay in memory; left out, more than are in use at one time. */
  readonly heldSessions?: number;
  /** Left out, all is allowed. */
  readonly consent?: ConsentSource;
  /** Left out, nothing is kept beyond the process. */
  readonly ledger?: CostLedger;
  readonly receipts?: Receipts;
  readonly config: RewriterConfig;
  readonly clock: Clock;
  /** `bytes` random bytes in hex. */
  readonly randomHex: (bytes: number) => string;
  readonly log: ProxyLog;
}

export interface RunningRewriter extends Rewriter {
  /** The newest requests, newest first. */
  receipts(): readonly Receipt[];
  close(): Promise<void>;
}

/** What is kept where no ledger and no receipts are given. */
const RULE = { tolerance: 0.05, credit: 10_000, longestHorizon: 60 };
const RECEIPTS = 200;

const ALL_ALLOWED: ConsentSource = { of: () => ({ captures: true, adds: true }), withhold: () => undefined };

/** @throws what the plan store throws while loading */
export async function createRewriter(deps: RewriterDeps): Promise<RunningRewriter> {
  const shelf = await openPlanCache(deps.plans, deps.log, deps.heldSessions);
  const { index: book, saveLater: note } = shelf;
  const cache = new ConversationCache();
  const lock = createKeyedMutex();
  const { log, clock, consent = ALL_ALLOWED } = deps;
  const ledger = deps.ledger ?? (await openCostLedger({ store: createMemoryLedger(), rule: RULE, clock, log }));
  const receipts =
    deps.receipts ??
    (await openReceipts({ store: createMemoryReceipts(), redact: (said) => said, most: RECEIPTS, log }));
  const { outcome, untouched } = createResponseRecorder({
    memory: deps.memory,
    ledger,
    receipts,
    cache,
    clock,
    log,
    breakPlan: ({ sessionId }, plan, broken) => note(sessionId, { kind: 'broken', planId: plan.id, broken }),
  });

  /** The plan in force; where that is lost or cannot stand, nothing but the thinking taken out that it would unbind. */
  function replayed(passage: RequestContext): RewriteResult {
    const { view, sessionId, kind, request } = passage;
    const match = kind === 'other' ? book.match(view, sessionId, 'answered') : ownMatch(view, sessionId);
    const plan = chooseReplayPlan(view, match, kind !== 'other' && isKnown(view, sessionId));
    if (plan === null) return { passage, plan, spliced: null, decision: 'replay', cut: false };
    const isInForce = plan === match?.plan;
    const spliced = splice(view, plan);
    if (spliced !== null && isAccepted(passage, plan, spliced)) {
      if (isInForce && kind === 'main' && request.path === 'messages')
        note(sessionId, { kind: 'served', planId: plan.id, ...describeUse(view, clock.now()) });
      return { passage, plan, spliced, decision: isInForce ? 'replay' : 'healing', cut: false };
    }
    if (isInForce) note(sessionId, { kind: 'broken', planId: plan.id, broken: 'structure' });
    const bare = stripThinkingPlan(view, plan);
    const without = bare === null ? null : splice(view, bare);
    const stands = bare !== null && without !== null && isAccepted(passage, bare, without);
    return { passage, plan: stands ? bare : null, spliced: stands ? without : null, decision: 'healing', cut: false };
  }

  /** A fork goes on with a plan of its own that says the same: what it adds is kept with it, and not its parent's. */
  function ownMatch(view: ConversationView, sessionId: string): Match | null {
    const match = book.match(view, sessionId);
    if (match === null || match.plan.sessionId === sessionId) return match;
    const plan = { ...match.plan, id: deps.randomHex(16), sessionId };
    note(sessionId, { kind: 'plan', plan, served: view.lineage[match.servedAt] as string, use: match.lastUse });
    return { ...match, plan };
  }

  async function advanced(passage: RequestContext, signal: AbortSignal): Promise<RewriteResult> {
    if (passage.kind !== 'main' || passage.request.path === 'count_tokens') return replayed(passage);
    const { view, sessionId } = passage;
    const match = ownMatch(view, sessionId);
    const turns = splitTurns(view);
    const situation = situate(passage, match, turns);
    setImmediate(remember, passage, findFreshPrompt(view) >= 0 ? turns.slice(0, -1) : [], situation);

    const step = decideStep(situation);
    if (step.kind === 'replay') return replayed(passage);
    const said = isOff(passage) ? EMPTY : await lookUpMemory(deps.memory, { view, sessionId, step }, deps.config, log);
    const stamp = { createdAtMs: clock.now(), id: deps.randomHex(16), fence: deps.randomHex(6) };
    const plan = buildPlan(deps.memory, { view, sessionId, step, ...stamp }, said, deps.config);
    const spliced = splice(view, plan);
    if (spliced === null || !isAccepted(passage, plan, spliced)) return replayed(passage);

    const record = createPlanRecord(
      step.kind === 'extend' && step.plan.id === plan.id ? step.plan : null,
      plan,
      describeUse(view, clock.now()),
    );
    if (changesNoBytes(record)) note(sessionId, record);
    else await commit(sessionId, plan, record, signal);
    return { passage, plan, spliced, decision: decisionOf(step), cut: cuts(step) };
  }

  /** Durable before its first use. Throws where the request has gone out without it in the meantime. */
  async function commit(sessionId: string, plan: EpochPlan, record: PlanRecord, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await shelf.save(sessionId, record);
    if (isLate(signal)) {
      note(sessionId, { kind: 'broken', planId: plan.id, broken: 'thinking' });
      throw signal.reason;
    }
    if (record.kind === 'plan') {
      const nodes = [plan.cut, ...plan.rounds].reduce((sum, cut) => sum + (cut?.nodeIds.length ?? 0), 0);
      log.info('epoch', { sessionId, epoch: plan.epoch, nodes });
    }
  }

  function situate(passage: RequestContext, match: Match | null, turns: readonly TurnSpan[]): StepInput {
    const { view, sessionId } = passage;
    const running = turns.at(-1);
    const parts = running === undefined ? [] : splitParts(view, splitRounds(view, running));
    const durable = deps.memory.nodesCovering([...turns, ...parts].map((span) => span.endHash));
    return {
      view,
      match,
      knownSession: isKnown(view, sessionId),
      isDurable: (turn) => durable.has(turn.endHash),
      rule: isOff(passage) ? null : deps.config.cut,
      nowMs: clock.now(),
      ownTokens: deps.config.preambleTokens + deps.config.systemTokens,
      roundsTokens: roundsBudget(deps.config),
    };
  }

  /** Something of ours was sent in it: its thinking may be bound to that. The ledger outlives the plans. */
  function isKnown(view: ConversationView, sessionId: string): boolean {
    return book.knowsSession(sessionId) || ledger.wasRewritten(sessionId, findConversationRoot(view));
  }

  /** The user does not want it here, or it has cost more than it saved: plans in force go on, nothing else is done. */
  function isOff({ view, sessionId }: RequestContext): boolean {
    return !consent.of(view.system.workingDirectory).adds || ledger.disabledReason(sessionId) !== null;
  }

  /** What is said while nothing may be taken in is not taken in later either. */
  function heed({ view, kind }: RequestContext): void {
    if (kind !== 'main' || consent.of(view.system.workingDirectory).captures) return;
    const turn = splitTurns(view).at(-1);
    if (turn !== undefined) consent.withhold(turn.key);
  }

  function isAccepted(passage: RequestContext, plan: EpochPlan, spliced: Spliced): boolean {
    const refusal = selfCheck(passage.view, plan, spliced, passage.betas, cache);
    if (refusal === null) return true;
    const ownFault = checkReceived(passage.view, passage.betas, cache) === null;
    if (ownFault) log.error('self-check failed; what is ours is left out', { refusal: refusal.message });
    return !ownFault;
  }

  /** What it was is found out when its answer is there: upstream need not wait for that. */
  function asItCame(request: MessagesRequest): RewriteOutcome {
    const seen: RewriteOutcome['onResponse'] = (response) => replay(request).onResponse(response);
    return { body: request.body, rewritten: false, onResponse: seen };
  }

  function replay(request: MessagesRequest): RewriteOutcome {
    try {
      const passage = parseRequest(request, cache);
      return passage === null ? untouched(request) : outcome(replayed(passage), true);
    } catch (error) {
      log.error('replay failed; the original goes out', { requestId: request.requestId, error });
      return untouched(request);
    }
  }

  /** Off the path: what is complete goes to memory, again and again until a node stands for it. */
  function remember({ view, sessionId }: RequestContext, turns: readonly TurnSpan[], situation: StepInput): void {
    if (!consent.of(view.system.workingDirectory).captures) return;
    const bare = turns.filter((turn) => !situation.isDurable(turn));
    const context = { sessionId, atMs: clock.now() };
    deps.memory.captureTurns(captureTurns(view, bare, context));
    const parts = selectPartsToPrepare(situation);
    deps.memory.captureTurns(captureParts(view, parts, context));
    const wanted = [...(turns.length === 0 ? [] : selectTurnsToPrepare(situation)), ...parts];
    if (wanted.length > 0)
      deps.memory.prepareNodes(
        sessionId,
        wanted.map((turn) => turn.endHash),
      );
  }

  return {
    async rewrite(request, signal) {
      const scan = mayBeStandalone(request.body, request.headers) ? scanBody(request.body) : null;
      if (scan !== null && isStandalone(scan, request.headers)) return asItCame(request);
      const passage = parseRequest(request, cache);
      if (passage === null) return untouched(request);
      heed(passage);
      return lock(passage.sessionId, async () => {
        let made: RewriteResult;
        try {
          await shelf.load(passage.view.lineage, passage.sessionId);
          made = await advanced(passage, signal);
        } catch (error) {
          log.warn('memory skipped; the plan in force is replayed', { requestId: request.requestId, error });
          made = replayed(passage);
        }
        return outcome(made, !signal.aborted);
      });
    },
    replay,
    receipts: () => receipts.list(),
    async close() {
      await Promise.all([deps.plans.close(), ledger.close(), receipts.close()]);
    },
  };
}

/** The deadline has passed, and a replay was sent in place of this rewrite; a client that left sent nothing. */
function isLate(signal: AbortSignal): boolean {
  return signal.aborted && (signal.reason as Error | undefined)?.name === 'TimeoutError';
}

function cuts(step: Step): boolean {
  return step.kind === 'epoch' && (step.cut !== null || step.rounds !== null);
}

function decisionOf(step: Step): string {
  if (step.kind !== 'epoch') return step.kind === 'extend' ? 'recall' : 'replay';
  if (step.rounds !== null) return `cut in a tool loop: ${step.rounds.because}`;
  return step.cut === null ? `epoch: ${step.because}` : `cut: ${step.cut.because}`;
}
