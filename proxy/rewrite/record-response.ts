import type { Clock } from '../../common/async.ts';
import type { CostLedger, Receipts, RequestCost } from '../ledger/index.ts';
import type {
  AssistantMessage,
  MemorySource,
  MessagesRequest,
  ObservedResponse,
  ProxyLog,
  RewriteOutcome,
} from '../ports.ts';
import { classifyApiError } from '../wire/api-error.ts';
import type { ConversationCache } from '../wire/conversation.ts';
import { splitTurns } from '../wire/split-turns.ts';
import type { EpochPlan } from './plan.ts';
import { createReceipt } from './receipt.ts';
import type { RequestContext, RewriteResult } from './request-context.ts';
import { captureAnsweredTurn } from './turn-capture.ts';
import { validateReceived } from './validate-rewrite.ts';

export interface ResponseRecorderDeps {
  readonly memory: Pick<MemorySource, 'captureTurns'>;
  readonly ledger: CostLedger;
  readonly receipts: Receipts;
  readonly cache: ConversationCache;
  readonly clock: Clock;
  readonly log: ProxyLog;
  readonly markBroken: (context: RequestContext, plan: EpochPlan, broken: 'thinking' | 'structure') => void;
}

/** Records what follows a response: the cost, the receipt, a refused plan, the captured turn. */
export interface ResponseRecorder {
  /** @param isSent  false when a replay was sent in place of this result, which then gets no receipt */
  toOutcome(result: RewriteResult, isSent: boolean): RewriteOutcome;
  /** For a body that could not be parsed. */
  passThrough(request: MessagesRequest): RewriteOutcome;
}

export function createResponseRecorder(deps: ResponseRecorderDeps): ResponseRecorder {
  const { memory, ledger, receipts, cache, clock, log } = deps;

  function guard(requestId: string, record: (response: ObservedResponse) => void): RewriteOutcome['onResponse'] {
    return (response) => {
      try {
        record(response);
      } catch (error) {
        log.error('response not recorded', { requestId, error });
      }
    };
  }

  function recordResponse({ context, cut, ...result }: RewriteResult, response: ObservedResponse): void {
    const rewrite = findRewrite(result);
    const { request, view, sessionId, kind } = context;
    if (rewrite !== null) breakRefusedPlan(context, rewrite.plan, response);
    const message = request.path === 'messages' ? response.message : null;
    let account: RequestCost | null = null;
    if (message !== null && isBilled(message)) {
      account = ledger.recordRequest({
        requestId: request.requestId,
        atMs: request.receivedAtMs,
        conversation: sessionId,
        model: view.model,
        view,
        sent: rewrite && { systemBlock: rewrite.plan.systemBlock, messages: rewrite.spliced.messages },
        counts: kind !== 'other',
        cut,
        usage: message.usage,
      });
    }
    receipts.settle(request.requestId, { status: response.status, refusal: response.errorText, account });
    if (message !== null) captureTurn(context, response, message);
  }

  /** A refusal counts against the plan only when the received request was valid. */
  function breakRefusedPlan(context: RequestContext, plan: EpochPlan, response: ObservedResponse): void {
    if (response.status !== 400) return;
    const broken = classifyApiError(response.errorText);
    if (broken === null || validateReceived(context, cache) !== null) return;
    const { sessionId } = context;
    log.error('upstream refused a rewritten request; the plan is marked broken', { sessionId, broken });
    ledger.recordRefusal(sessionId);
    deps.markBroken(context, plan, broken);
  }

  function captureTurn(context: RequestContext, response: ObservedResponse, message: AssistantMessage): void {
    const { view, sessionId, kind } = context;
    const turn = splitTurns(view).at(-1);
    if (kind !== 'main' || response.end !== 'complete' || !endsTurn(message.stopReason) || turn === undefined) return;
    memory.captureTurns([captureAnsweredTurn(view, turn, message, { sessionId, atMs: clock.now() })]);
  }

  return {
    toOutcome(result, isSent) {
      const { request, view, sessionId, kind } = result.context;
      const { requestId, receivedAtMs: atMs } = request;
      const rewrite = findRewrite(result);
      if (isSent && request.path === 'messages') {
        const { decision } = result;
        receipts.add(requestId, () => createReceipt({ requestId, sessionId, atMs, kind, decision, view, rewrite }));
      }
      const onResponse = guard(requestId, (response) => recordResponse(result, response));
      return { body: rewrite?.spliced.body ?? request.body, rewritten: rewrite !== null, onResponse };
    },
    passThrough(request) {
      const { requestId, receivedAtMs: atMs, body } = request;
      const onResponse = guard(requestId, ({ message }) => {
        if (request.path !== 'messages' || message === null || !isBilled(message)) return;
        const { model, usage } = message;
        const unknown = { conversation: '', view: null, sent: null, counts: false, cut: false };
        ledger.recordRequest({ requestId, atMs, model, usage, ...unknown });
      });
      return { body, rewritten: false, onResponse };
    },
  };
}

/** Null when the received bytes went upstream. */
function findRewrite({ plan, spliced }: Pick<RewriteResult, 'plan' | 'spliced'>) {
  return plan !== null && spliced !== null && spliced.edits.length > 0 ? { plan, spliced } : null;
}

function isBilled({ usage }: AssistantMessage): boolean {
  return usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h > 0;
}

function endsTurn(stopReason: string | null): boolean {
  return stopReason !== null && stopReason !== 'tool_use' && stopReason !== 'pause_turn';
}
