import type { Clock } from '../../common/async.ts';
import type { AssistantMessage, ProxyLog } from '../ports.ts';
import type { EpochPlan } from '../rewrite/plan.ts';
import type { ConversationView } from '../wire/conversation.ts';
import type { Spliced } from '../wire/splice.ts';
import { type CostComparison, compareCosts, costUsd, inputEquivalents } from './cost.ts';
import type { Conversation, LedgerRecord, RequestRecord, Totals } from './entry.ts';
import type { LossRule } from './loss-detector.ts';
import { type Bill, createPrefixCache, type PrefixEntry } from './prefix-cache.ts';
import { createPromptEstimator } from './prompt-usage.ts';
import { LedgerState } from './state.ts';
import type { LedgerStore } from './store.ts';

export { EMPTY_TOTALS, type Totals } from './entry.ts';
export { createMemoryReceipts, openReceiptFile, type ReceiptStore } from './receipt-store.ts';
export { openReceipts, type Receipts } from './receipts.ts';
export { createMemoryLedger, type LedgerStore, openLedgerFile } from './store.ts';

/** A request that upstream answered, and what we had made of it. */
export interface BilledRequest {
  readonly requestId: string;
  readonly atMs: number;
  readonly conversation: string;
  readonly model: string;
  /** Null where the body could not be understood, and went out as it came. */
  readonly view: ConversationView | null;
  /** Null where the bytes received went out. */
  readonly rewrite: { readonly plan: EpochPlan; readonly spliced: Spliced } | null;
  /** Of the conversation itself, or on its prefix. */
  readonly counts: boolean;
  /** It was the first to go out with a new cut. */
  readonly cut: boolean;
  readonly usage: AssistantMessage['usage'];
}

/** What a request came to. Tokens are those of the prompt. */
export interface RequestCost {
  readonly billed: Bill;
  readonly untouched: Bill;
  readonly output: number;
  readonly savedEquivalents: number;
  readonly savedUsd: number;
  /** Of its conversation until now. */
  readonly conversationSavedUsd: number;
  /** Why trimming has ended there; null while it has not. */
  readonly off: string | null;
}

/** Counts what every request cost beside what it would have cost untouched. Nothing here is on the path of a request. */
export interface CostLedger {
  recordRequest(request: BilledRequest): RequestCost;
  recordRefusal(conversation: string): void;
  /** A model call of our own; `conversation` is '' where none is known. */
  recordOwnCall(call: {
    readonly conversation: string;
    readonly calls: number;
    readonly tokens: number;
    readonly usd: number;
  }): void;
  /** Why nothing new may be trimmed or added in this conversation; null while it may. */
  disabledReason(conversation: string): string | null;
  /** Also true for a fork of one that was. */
  wasRewritten(conversation: string, root: string): boolean;
  conversation(id: string): Conversation | null;
  totals(sinceMs: number): Totals;
  disabledConversations(): readonly Conversation[];
  close(): Promise<void>;
}

export interface CostLedgerDeps {
  readonly store: LedgerStore;
  readonly rule: LossRule;
  readonly clock: Clock;
  readonly log: ProxyLog;
}

/** Records after which they are summed up. */
const SUM_UP_AFTER = 2_000;

export async function openCostLedger({ store, rule, clock, log }: CostLedgerDeps): Promise<CostLedger> {
  const book = new LedgerState(rule);
  const scales = createPromptEstimator();
  const caches = { untouched: createPrefixCache(), sent: createPrefixCache() };
  let live: PrefixEntry[] = [];
  let waiting = 0;

  const hold = (touched: readonly PrefixEntry[]): void => {
    const keys = new Set(touched.map(({ key }) => key));
    live = [...live.filter(({ key, expiresAtMs }) => expiresAtMs > clock.now() && !keys.has(key)), ...touched];
  };

  for (const record of await store.load()) {
    book.apply(record);
    waiting += 1;
    if (record.kind !== 'request' && record.kind !== 'prefixes') continue;
    for (const entry of record.touched) caches.untouched.restore(entry);
    hold(record.touched);
  }
  if (waiting > SUM_UP_AFTER) sumUp();

  function sumUp(): void {
    waiting = 0;
    store.replace(book.summary(live)).catch(unwritten);
  }

  function unwritten(error: unknown): void {
    log.warn('the ledger could not be written; a restart would forget the newest figures', { error });
  }

  function enter(record: LedgerRecord): void {
    const ended = book.apply(record);
    store.append(record).catch(unwritten);
    waiting += 1;
    if (ended !== null)
      log.warn('trimming has ended for a conversation', { sessionId: ended.id, because: ended.off?.because });
    if (waiting > SUM_UP_AFTER) sumUp();
  }

  function compared({ model, view, rewrite, atMs }: BilledRequest, billed: Bill): CostComparison {
    if (view === null) return { untouched: billed, touched: [] };
    const received = scales.received(view);
    const sent = rewrite === null ? null : scales.sent(received, rewrite.plan, rewrite.spliced);
    return compareCosts(caches, { model, atMs, received, sent, billed });
  }

  return {
    recordRequest(request) {
      const { model, usage } = request;
      const { output, ...billed } = usage;
      const { untouched, touched } = compared(request, billed);
      hold(touched);
      enter(recordOf(request, { billed, untouched, output, touched }));
      const conversation = book.conversation(request.conversation);
      return {
        billed,
        untouched,
        output,
        savedEquivalents: inputEquivalents(model, untouched) - inputEquivalents(model, billed),
        savedUsd: costUsd(model, untouched, 0) - costUsd(model, billed, 0),
        conversationSavedUsd: conversation?.balance.savedUsd ?? 0,
        off: conversation?.off?.because ?? null,
      };
    },
    recordRefusal: (conversation) => enter({ kind: 'refused', atMs: clock.now(), conversation }),
    recordOwnCall: (call) => enter({ kind: 'own', atMs: clock.now(), ...call }),
    disabledReason: (conversation) => book.conversation(conversation)?.off?.because ?? null,
    wasRewritten: (conversation, root) => book.wasRewritten(conversation, root),
    conversation: (id) => book.conversation(id),
    totals: (sinceMs) => book.since(sinceMs),
    disabledConversations: () => book.off(),
    close: () => store.close(),
  };
}

function recordOf(
  { requestId, atMs, conversation, model, view, rewrite, counts, cut }: BilledRequest,
  figures: Pick<RequestRecord, 'billed' | 'untouched' | 'output' | 'touched'>,
): RequestRecord {
  const rewritten = rewrite !== null;
  const root = view === null ? '' : findConversationRoot(view);
  const about = { requestId, atMs, conversation, root, model, rewritten, counts, cut };
  return { kind: 'request', ...about, ...figures };
}

/** Lineage up to the first answer, which no two conversations share unless one was forked from the other. */
export function findConversationRoot({ infos, lineage }: Pick<ConversationView, 'infos' | 'lineage'>): string {
  return lineage[infos.findIndex((info) => info.role === 'assistant')] ?? '';
}
