import type { Clock } from '../../common/clock.ts';
import type { Account, CostLedger } from '../ledger/index.ts';
import type { Receipts } from '../ledger/receipts.ts';
import type {
  AssistantMessage,
  MemorySource,
  MessagesRequest,
  ProxyLog,
  ResponseSeen,
  RewriteOutcome,
} from '../ports.ts';
import { faultOf } from '../wire/classify-refusal.ts';
import type { ViewCache } from '../wire/conversation.ts';
import { splitTurns } from '../wire/split-turns.ts';
import type { EpochPlan } from './plan.ts';
import type { Made, Passage } from './request-context.ts';
import { checkReceived } from './self-check.ts';
import { answeredTurn } from './turn-capture.ts';

export interface AftermathDeps {
  readonly memory: Pick<MemorySource, 'capture'>;
  readonly ledger: CostLedger;
  readonly receipts: Receipts;
  readonly cache: ViewCache;
  readonly clock: Clock;
  readonly log: ProxyLog;
  /** Gives a plan up that upstream refused. */
  readonly breakPlan: (passage: Passage, plan: EpochPlan, broken: 'thinking' | 'structure') => void;
}

/** All that follows an answer: the bill, the receipt, a plan given up, the turn taken into memory. */
export interface Aftermath {
  /** `sends` is false for what nobody waits for any more: it leaves no receipt. */
  outcome(made: Made, sends: boolean): RewriteOutcome;
  /** For a body that was not understood. */
  untouched(request: MessagesRequest): RewriteOutcome;
}

export function createAftermath(deps: AftermathDeps): Aftermath {
  const { memory, ledger, receipts, cache, clock, log, breakPlan } = deps;

  function guarded(requestId: string, work: (response: ResponseSeen) => void): RewriteOutcome['seen'] {
    return (response) => {
      try {
        work(response);
      } catch (error) {
        log.error('the answer was not captured', { requestId, error });
      }
    };
  }

  function settle(made: Made, rewritten: boolean, response: ResponseSeen): void {
    const { passage, plan, spliced, cut } = made;
    const { request, view, sessionId, kind } = passage;
    if (rewritten && plan !== null) heal(passage, plan, response);
    const isMessage = request.path === 'messages';
    let account: Account | null = null;
    if (isMessage && response.message !== null && isBilled(response.message)) {
      const rewrite = rewritten && plan !== null && spliced !== null ? { plan, spliced } : null;
      const about = { requestId: request.requestId, atMs: request.receivedAtMs, conversation: sessionId };
      const { usage } = response.message;
      account = ledger.billed({ ...about, model: view.model, view, rewrite, counts: kind !== 'other', cut, usage });
    }
    receipts.settled(request.requestId, { status: response.status, refusal: response.errorText, account });
    if (isMessage && response.message !== null) remember(passage, response, response.message);
  }

  /** A refusal that the request as received would not have met. */
  function heal(passage: Passage, plan: EpochPlan, response: ResponseSeen): void {
    if (response.status !== 400) return;
    const broken = faultOf(response.errorText);
    if (broken === null || checkReceived(passage.view, passage.betas, cache) !== null) return;
    const { sessionId } = passage;
    log.error('upstream refused a rewritten request; its plan is given up', { sessionId, broken });
    ledger.refused(sessionId);
    breakPlan(passage, plan, broken);
  }

  function remember({ view, sessionId, kind }: Passage, response: ResponseSeen, message: AssistantMessage): void {
    const turn = splitTurns(view).at(-1);
    if (kind !== 'main' || response.end !== 'complete' || !endsTurn(message.stopReason) || turn === undefined) return;
    memory.capture([answeredTurn(view, turn, message, { sessionId, atMs: clock.now() })]);
  }

  return {
    outcome(made, sends) {
      const { request } = made.passage;
      const rewritten = made.spliced !== null && made.spliced.edits.length > 0;
      if (sends && request.path === 'messages') receipts.sent(made, request.receivedAtMs);
      const body = rewritten && made.spliced !== null ? made.spliced.body : request.body;
      return { body, rewritten, seen: guarded(request.requestId, (response) => settle(made, rewritten, response)) };
    },
    untouched(request) {
      const { requestId, receivedAtMs: atMs, body } = request;
      const seen = guarded(requestId, ({ message }) => {
        if (request.path !== 'messages' || message === null || !isBilled(message)) return;
        const { model, usage } = message;
        const nothing = { conversation: '', view: null, rewrite: null, counts: false, cut: false };
        ledger.billed({ requestId, atMs, model, usage, ...nothing });
      });
      return { body, rewritten: false, seen };
    },
  };
}

function isBilled({ usage }: AssistantMessage): boolean {
  return usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h > 0;
}

function endsTurn(stopReason: string | null): boolean {
  return stopReason !== null && stopReason !== 'tool_use' && stopReason !== 'pause_turn';
}
