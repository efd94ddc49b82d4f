import type { Clock } from '../../common/async.ts';
import type { CostLedger, RequestCost } from '../ledger/index.ts';
import type { Receipts } from '../ledger/receipts.ts';
import type {
  AssistantMessage,
  MemorySource,
  MessagesRequest,
  ObservedResponse,
  ProxyLog,
  RewriteOutcome,
} from '../ports.ts';
import { classifyApiError } from '../wire/classify-refusal.ts';
import type { ConversationCache } from '../wire/conversation.ts';
import { splitTurns } from '../wire/split-turns.ts';
import type { EpochPlan } from './plan.ts';
import type { RequestContext, RewriteResult } from './request-context.ts';
import { checkReceived } from './self-check.ts';
import { captureAnsweredTurn } from './turn-capture.ts';

export interface ResponseRecorderDeps {
  readonly memory: Pick<MemorySource, 'captureTurns'>;
  readonly ledger: CostLedger;
  readonly receipts: Receipts;
  readonly cache: ConversationCache;
  readonly clock: Clock;
  readonly log: ProxyLog;
  /** Gives a plan up that upstream refused. */
  readonly breakPlan: (passage: RequestContext, plan: EpochPlan, broken: 'thinking' | 'structure') => void;
}

/** All that follows an answer: the bill, the receipt, a plan given up, the turn taken into memory. */
export interface ResponseRecorder {
  /** `sends` is false for what nobody waits for any more: it leaves no receipt. */
  outcome(made: RewriteResult, sends: boolean): RewriteOutcome;
  /** For a body that was not understood. */
  untouched(request: MessagesRequest): RewriteOutcome;
}

export function createResponseRecorder(deps: ResponseRecorderDeps): ResponseRecorder {
  const { memory, ledger, receipts, cache, clock, log, breakPlan } = deps;

  function guarded(requestId: string, work: (response: ObservedResponse) => void): RewriteOutcome['onResponse'] {
    return (response) => {
      try {
        work(response);
      } catch (error) {
        log.error('the answer was not captured', { requestId, error });
      }
    };
  }

  function settle(made: RewriteResult, rewritten: boolean, response: ObservedResponse): void {
    const { passage, plan, spliced, cut } = made;
    const { request, view, sessionId, kind } = passage;
    if (rewritten && plan !== null) heal(passage, plan, response);
    const isMessage = request.path === 'messages';
    let account: RequestCost | null = null;
    if (isMessage && response.message !== null && isBilled(response.message)) {
      const rewrite = rewritten && plan !== null && spliced !== null ? { plan, spliced } : null;
      const about = { requestId: request.requestId, atMs: request.receivedAtMs, conversation: sessionId };
      const { usage } = response.message;
      account = ledger.recordRequest({
        ...about,
        model: view.model,
        view,
        rewrite,
        counts: kind !== 'other',
        cut,
        usage,
      });
    }
    receipts.settle(request.requestId, { status: response.status, refusal: response.errorText, account });
    if (isMessage && response.message !== null) remember(passage, response, response.message);
  }

  /** A refusal that the request as received would not have met. */
  function heal(passage: RequestContext, plan: EpochPlan, response: ObservedResponse): void {
    if (response.status !== 400) return;
    const broken = classifyApiError(response.errorText);
    if (broken === null || checkReceived(passage.view, passage.betas, cache) !== null) return;
    const { sessionId } = passage;
    log.error('upstream refused a rewritten request; its plan is given up', { sessionId, broken });
    ledger.recordRefusal(sessionId);
    breakPlan(passage, plan, broken);
  }

  function remember(
    { view, sessionId, kind }: RequestContext,
    response: ObservedResponse,
    message: AssistantMessage,
  ): void {
    const turn = splitTurns(view).at(-1);
    if (kind !== 'main' || response.end !== 'complete' || !endsTurn(message.stopReason) || turn === undefined) return;
    memory.captureTurns([captureAnsweredTurn(view, turn, message, { sessionId, atMs: clock.now() })]);
  }

  return {
    outcome(made, sends) {
      const { request } = made.passage;
      const rewritten = made.spliced !== null && made.spliced.edits.length > 0;
      if (sends && request.path === 'messages') receipts.add(made, request.receivedAtMs);
      const body = rewritten && made.spliced !== null ? made.spliced.body : request.body;
      return {
        body,
        rewritten,
        onResponse: guarded(request.requestId, (response) => settle(made, rewritten, response)),
      };
    },
    untouched(request) {
      const { requestId, receivedAtMs: atMs, body } = request;
      const seen = guarded(requestId, ({ message }) => {
        if (request.path !== 'messages' || message === null || !isBilled(message)) return;
        const { model, usage } = message;
        const nothing = { conversation: '', view: null, rewrite: null, counts: false, cut: false };
        ledger.recordRequest({ requestId, atMs, model, usage, ...nothing });
      });
      return { body, rewritten: false, onResponse: seen };
    },
  };
}

function isBilled({ usage }: AssistantMessage): boolean {
  return usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h > 0;
}

function endsTurn(stopReason: string | null): boolean {
  return stopReason !== null && stopReason !== 'tool_use' && stopReason !== 'pause_turn';
}
