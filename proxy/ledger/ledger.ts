import type { Clock } from '../../common/async.ts';
import type { AssistantMessage, ProxyLog } from '../ports.ts';
import type { ConversationView } from '../wire/conversation.ts';
import { type CostComparison, compareCosts, costUsd, inputEquivalents } from './cost.ts';
import type { Conversation, LedgerRecord, RequestRecord, Totals } from './entry.ts';
import type { LossRule } from './loss-detector.ts';
import { type Bill, createPrefixCache, type PrefixEntry } from './prefix-cache.ts';
import { createPromptEstimator, type SentPrompt } from './prompt-usage.ts';
import { LedgerState } from './state.ts';
import type { LedgerStore } from './store.ts';

/** A request that upstream answered. */
export interface BilledRequest {
  readonly requestId: string;
  readonly atMs: number;
  readonly conversation: string;
  readonly model: string;
  /** Null when the body could not be parsed and passed through. */
  readonly view: ConversationView | null;
  /** Null when the received bytes went upstream. */
  readonly sent: SentPrompt | null;
  /** A request of the conversation itself or on its prefix: it counts in the balance. */
  readonly counts: boolean;
  /** The first request with a new cut. */
  readonly cut: boolean;
  readonly usage: AssistantMessage['usage'];
}

/** What a request cost. Tokens are prompt tokens. */
export interface RequestCost {
  readonly billed: Bill;
  readonly untouched: Bill;
  readonly output: number;
  readonly savedEquivalents: number;
  readonly savedUsd: number;
  /** Of the conversation so far. */
  readonly conversationSavedUsd: number;
  /** Why trimming is off in the conversation; null while it is on. */
  readonly off: string | null;
}

/** Records what each request cost and what it would have cost untouched. Never on the request path. */
export interface CostLedger {
  recordRequest(request: BilledRequest): RequestCost;
  recordRefusal(conversation: string): void;
  /** Records model calls made by comet-cc itself; `conversation` is '' when unknown. */
  recordOwnCall(call: {
    readonly conversation: string;
    readonly calls: number;
    readonly tokens: number;
    readonly usd: number;
  }): void;
  /** Why nothing new is trimmed or added in this conversation; null while trimming is on. */
  disabledReason(conversation: string): string | null;
  /** Also true for a fork of a rewritten conversation. */
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

/** Records after which the file is compacted. */
const MAX_RECORDS = 2_000;

export async function openCostLedger({ store, rule, clock, log }: CostLedgerDeps): Promise<CostLedger> {
  const state = new LedgerState(rule);
  const estimator = createPromptEstimator();
  const caches = { untouched: createPrefixCache(), sent: createPrefixCache() };
  let live: PrefixEntry[] = [];
  let records = 0;

  const trackLive = (touched: readonly PrefixEntry[]): void => {
    const keys = new Set(touched.map(({ key }) => key));
    live = [...live.filter(({ key, expiresAtMs }) => expiresAtMs > clock.now() && !keys.has(key)), ...touched];
  };

  for (const record of await store.load()) {
    state.apply(record);
    records += 1;
    if (record.kind !== 'request' && record.kind !== 'prefixes') continue;
    for (const entry of record.touched) caches.untouched.restore(entry);
    trackLive(record.touched);
  }
  if (records > MAX_RECORDS) compact();

  function compact(): void {
    records = 0;
    store.replace(state.summary(live)).catch(logFailure);
  }

  function logFailure(error: unknown): void {
    log.warn('ledger not written; a restart will lose the newest records', { error });
  }

  function add(record: LedgerRecord): void {
    const disabled = state.apply(record);
    store.append(record).catch(logFailure);
    records += 1;
    if (disabled !== null)
      log.warn('trimming turned off for a conversation', { sessionId: disabled.id, because: disabled.off?.because });
    if (records > MAX_RECORDS) compact();
  }

  function compareRequest({ model, view, sent, atMs }: BilledRequest, billed: Bill): CostComparison {
    if (view === null) return { untouched: billed, touched: [] };
    const received = estimator.received(view);
    const sentPrompt = sent === null ? null : estimator.sent(received, sent);
    return compareCosts(caches, { model, atMs, received, sent: sentPrompt, billed });
  }

  return {
    recordRequest(request) {
      const { model, usage } = request;
      const { output, ...billed } = usage;
      const { untouched, touched } = compareRequest(request, billed);
      trackLive(touched);
      add(createRecord(request, { billed, untouched, output, touched }));
      const conversation = state.conversation(request.conversation);
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
    recordRefusal: (conversation) => add({ kind: 'refused', atMs: clock.now(), conversation }),
    recordOwnCall: (call) => add({ kind: 'own', atMs: clock.now(), ...call }),
    disabledReason: (conversation) => state.conversation(conversation)?.off?.because ?? null,
    wasRewritten: (conversation, root) => state.wasRewritten(conversation, root),
    conversation: (id) => state.conversation(id),
    totals: (sinceMs) => state.since(sinceMs),
    disabledConversations: () => state.off(),
    close: () => store.close(),
  };
}

function createRecord(
  { requestId, atMs, conversation, model, view, sent, counts, cut }: BilledRequest,
  figures: Pick<RequestRecord, 'billed' | 'untouched' | 'output' | 'touched'>,
): RequestRecord {
  const rewritten = sent !== null;
  const root = view === null ? '' : findConversationRoot(view);
  const about = { requestId, atMs, conversation, root, model, rewritten, counts, cut };
  return { kind: 'request', ...about, ...figures };
}

/** Lineage hash up to the first answer; two conversations share it only when one was forked from the other. */
export function findConversationRoot({ infos, lineage }: Pick<ConversationView, 'infos' | 'lineage'>): string {
  return lineage[infos.findIndex((info) => info.role === 'assistant')] ?? '';
}
