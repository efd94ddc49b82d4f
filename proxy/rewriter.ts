import type { Clock } from '../common/clock.ts';
import { answeredTurn, capturedParts, capturedTurn } from './capture.ts';
import { type EpochConfig, formPlan, recollect } from './epochs.ts';
import type { PlanStore } from './plan-store.ts';
import type { MemorySource, MessagesRequest, ProxyLog, ResponseSeen, RewriteOutcome, Rewriter } from './ports.ts';
import { createTurnstile } from './turnstile.ts';
import { classify, type RequestClass, sessionOf } from './wire/classify.ts';
import type { CutRule } from './wire/cut.ts';
import { decideStep, roundsToPrepare, type Situation, type Step, turnsToPrepare } from './wire/epoch.ts';
import { faultOf } from './wire/fault.ts';
import { type EpochPlan, type Match, PlanBook, type PlanRecord } from './wire/plan.ts';
import { type Receipt, type ReceiptInput, receiptOf } from './wire/receipt.ts';
import { changesNothing, recordOf, servedBy } from './wire/record.ts';
import { splitParts, splitRounds } from './wire/rounds.ts';
import { checkReceived, selfCheck } from './wire/self-check.ts';
import { parseBetas } from './wire/shape.ts';
import { type Spliced, splice } from './wire/splice.ts';
import { freshPromptAt, splitTurns, type TurnSpan } from './wire/turns.ts';
import { type ConversationView, tokensOf, ViewCache, viewConversation } from './wire/view.ts';

export interface RewriterConfig extends EpochConfig {
  /** Null: nothing is ever trimmed. */
  readonly cut: CutRule | null;
}

export interface RewriterDeps {
  readonly memory: MemorySource;
  readonly plans: PlanStore;
  readonly config: RewriterConfig;
  readonly clock: Clock;
  /** `bytes` random bytes in hex. */
  readonly randomHex: (bytes: number) => string;
  readonly log: ProxyLog;
}

export interface RunningRewriter extends Rewriter {
  /** Input tokens of all answered requests, as upstream billed them and as they would have been unrewritten. */
  tokens(): { readonly original: number; readonly sent: number };
  /** The newest rewritten requests, newest first. */
  receipts(): readonly Receipt[];
  close(): Promise<void>;
}

/** Rewritten requests that can be explained. */
const RECEIPTS = 50;

/** A request that was understood. */
interface Passage {
  readonly request: MessagesRequest;
  readonly view: ConversationView;
  readonly sessionId: string;
  readonly kind: RequestClass;
  readonly betas: readonly string[];
}

/** @throws what the plan store throws while loading */
export async function createRewriter(deps: RewriterDeps): Promise<RunningRewriter> {
  const book = new PlanBook();
  for (const record of await deps.plans.load()) book.apply(record);
  const cache = new ViewCache();
  const inTurn = createTurnstile();
  const total = { original: 0, sent: 0 };
  const receipts: Receipt[] = [];

  function understand(request: MessagesRequest): Passage | null {
    const view = viewConversation(request.body, cache);
    if (view === null) return null;
    const { kind } = classify(view, request.headers);
    const betas = parseBetas(request.headers['anthropic-beta']);
    return { request, view, sessionId: sessionOf(view, request.headers), kind, betas };
  }

  function replayed(passage: Passage): RewriteOutcome {
    const { view, sessionId, kind, request } = passage;
    const match = book.match(view, sessionId, kind === 'other' ? 'answered' : 'any');
    const spliced = match === null ? null : splice(view, match.plan);
    if (match !== null && spliced !== null && kind === 'main' && request.path === 'messages')
      note(sessionId, { kind: 'served', planId: match.plan.id, ...servedBy(view, deps.clock.now()) });
    return outcome(passage, match?.plan ?? null, spliced, 'replay');
  }

  /** A fork goes on with a plan of its own that says the same: what it adds is kept with it, and not its parent's. */
  function ownMatch(view: ConversationView, sessionId: string): Match | null {
    const match = book.match(view, sessionId);
    if (match === null || match.plan.sessionId === sessionId) return match;
    const plan = { ...match.plan, id: deps.randomHex(16), sessionId };
    note(sessionId, { kind: 'plan', plan, served: view.lineage[match.servedAt] as string, use: match.lastUse });
    return { ...match, plan };
  }

  async function advanced(passage: Passage, signal: AbortSignal): Promise<RewriteOutcome> {
    if (passage.kind !== 'main' || passage.request.path === 'count_tokens') return replayed(passage);
    const { view, sessionId } = passage;
    const match = ownMatch(view, sessionId);
    const turns = splitTurns(view);
    const situation = situate(view, match, sessionId, turns);
    setImmediate(remember, passage, freshPromptAt(view) >= 0 ? turns.slice(0, -1) : [], situation);

    const step = decideStep(situation);
    if (step.kind === 'replay') return replayed(passage);
    const said = await recollect(deps.memory, { view, sessionId, step }, deps.config, deps.log);
    const stamp = { createdAtMs: deps.clock.now(), id: deps.randomHex(16), fence: deps.randomHex(6) };
    const plan = formPlan(deps.memory, { view, sessionId, step, ...stamp }, said, deps.config);
    const spliced = splice(view, plan);
    if (spliced === null || !isAccepted(passage, plan, spliced)) return replayed(passage);

    const record = recordOf(
      step.kind === 'extend' && step.plan.id === plan.id ? step.plan : null,
      plan,
      servedBy(view, deps.clock.now()),
    );
    if (changesNothing(record)) note(sessionId, record);
    else await commit(sessionId, plan, record, signal);
    return outcome(passage, plan, spliced, decisionOf(step));
  }

  /** Durable before its first use. Throws where the request has gone out without it in the meantime. */
  async function commit(sessionId: string, plan: EpochPlan, record: PlanRecord, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await deps.plans.append(sessionId, record, true);
    book.apply(record);
    if (isLate(signal)) {
      note(sessionId, { kind: 'broken', planId: plan.id, broken: 'thinking' });
      throw signal.reason;
    }
    if (record.kind === 'plan') {
      const nodes = [plan.cut, ...plan.rounds].reduce((sum, cut) => sum + (cut?.nodeIds.length ?? 0), 0);
      deps.log.info('epoch', { sessionId, epoch: plan.epoch, nodes });
    }
  }

  function situate(
    view: ConversationView,
    match: Match | null,
    sessionId: string,
    turns: readonly TurnSpan[],
  ): Situation {
    const running = turns.at(-1);
    const parts = running === undefined ? [] : splitParts(view, splitRounds(view, running));
    const durable = deps.memory.standIns([...turns, ...parts].map((span) => span.endHash));
    return {
      view,
      match,
      knownSession: book.knowsSession(sessionId),
      isDurable: (turn) => durable.has(turn.endHash),
      rule: deps.config.cut,
      nowMs: deps.clock.now(),
      ownTokens: deps.config.preambleTokens + deps.config.systemTokens,
    };
  }

  function isAccepted(passage: Passage, plan: EpochPlan, spliced: Spliced): boolean {
    const refusal = selfCheck(passage.view, plan, spliced, passage.betas, cache);
    if (refusal === null) return true;
    const ownFault = checkReceived(passage.view, passage.betas, cache) === null;
    if (ownFault) deps.log.error('self-check failed; the addition is left out', { refusal: refusal.message });
    return !ownFault;
  }

  /** Kept for matching only: losing it costs nothing but a match by a shorter prefix. */
  function note(sessionId: string, record: PlanRecord): void {
    book.apply(record);
    deps.plans.append(sessionId, record, false).catch((error: unknown) => {
      deps.log.warn('a plan record was not written', { sessionId, error });
    });
  }

  /** Off the path: what is complete goes to memory, again and again until a node stands for it. */
  function remember({ view, sessionId }: Passage, turns: readonly TurnSpan[], situation: Situation): void {
    const bare = turns.filter((turn) => !situation.isDurable(turn));
    const context = { sessionId, atMs: deps.clock.now() };
    deps.memory.capture(bare.map((turn) => capturedTurn(view, turn, context)));
    const parts = roundsToPrepare(situation);
    deps.memory.capture(capturedParts(view, parts, context));
    const wanted = [...(turns.length === 0 ? [] : turnsToPrepare(situation)), ...parts];
    if (wanted.length > 0)
      deps.memory.prepare(
        sessionId,
        wanted.map((turn) => turn.endHash),
      );
  }

  function outcome(
    passage: Passage,
    plan: EpochPlan | null,
    spliced: Spliced | null,
    decision: string,
  ): RewriteOutcome {
    const rewritten = spliced !== null && spliced.edits.length > 0;
    if (rewritten) {
      const { request, view, sessionId, kind } = passage;
      const atMs = deps.clock.now();
      // Off the path: it hashes both bodies, and holding on to them instead would hold hundreds of megabytes.
      setImmediate(keepReceipt, { requestId: request.requestId, sessionId, atMs, kind, decision, view, plan, spliced });
    }
    const body = rewritten ? spliced.body : passage.request.body;
    const seen = (response: ResponseSeen): void => {
      try {
        afterwards(passage, rewritten ? plan : null, body, response);
      } catch (error) {
        deps.log.error('the answer was not captured', { requestId: passage.request.requestId, error });
      }
    };
    return { body, rewritten, seen };
  }

  function keepReceipt(input: ReceiptInput): void {
    receipts.unshift(receiptOf(input));
    receipts.length = Math.min(receipts.length, RECEIPTS);
  }

  function afterwards(passage: Passage, plan: EpochPlan | null, body: Buffer, response: ResponseSeen): void {
    const { view, sessionId, request } = passage;
    if (response.status === 400 && plan !== null) {
      const broken = faultOf(response.errorText);
      if (broken === null || checkReceived(view, passage.betas, cache) !== null) return;
      deps.log.error('upstream refused a rewritten request; its plan is given up', { sessionId, broken });
      note(sessionId, { kind: 'broken', planId: plan.id, broken });
    }
    const { message } = response;
    if (message === null || request.path === 'count_tokens') return;
    const { input, cacheRead, cacheWrite5m, cacheWrite1h } = message.usage;
    const billed = input + cacheRead + cacheWrite5m + cacheWrite1h;
    total.sent += billed;
    total.original += Math.round(billed * (tokensOf(request.body.length) / tokensOf(body.length)));
    const turn = splitTurns(view).at(-1);
    if (passage.kind !== 'main' || response.end !== 'complete' || !endsTurn(message.stopReason) || turn === undefined)
      return;
    deps.memory.capture([answeredTurn(view, turn, message, { sessionId, atMs: deps.clock.now() })]);
  }

  return {
    async rewrite(request, signal) {
      const passage = understand(request);
      if (passage === null) return untouched(request);
      return inTurn(passage.sessionId, async () => {
        try {
          return await advanced(passage, signal);
        } catch (error) {
          deps.log.warn('memory skipped; the plan in force is replayed', { requestId: request.requestId, error });
          return replayed(passage);
        }
      });
    },
    replay(request) {
      try {
        const passage = understand(request);
        return passage === null ? untouched(request) : replayed(passage);
      } catch (error) {
        deps.log.error('replay failed; the original goes out', { requestId: request.requestId, error });
        return untouched(request);
      }
    },
    tokens: () => ({ ...total }),
    receipts: () => [...receipts],
    close: () => deps.plans.close(),
  };
}

function untouched(request: MessagesRequest): RewriteOutcome {
  return { body: request.body, rewritten: false, seen() {} };
}

/** The deadline has passed, and a replay was sent in place of this rewrite; a client that left sent nothing. */
function isLate(signal: AbortSignal): boolean {
  return signal.aborted && (signal.reason as Error | undefined)?.name === 'TimeoutError';
}

function decisionOf(step: Step): string {
  if (step.kind !== 'epoch') return step.kind === 'extend' ? 'recall' : 'replay';
  if (step.rounds !== null) return `cut in a tool loop: ${step.rounds.because}`;
  return step.cut === null ? `epoch: ${step.because}` : `cut: ${step.cut.because}`;
}

function endsTurn(stopReason: string | null): boolean {
  return stopReason !== null && stopReason !== 'tool_use' && stopReason !== 'pause_turn';
}
