import type { Clock } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import { LruMap } from '../../common/map.ts';
import { localDay } from '../../common/text.ts';
import type { AssistantMessage, ProxyLog } from '../ports.ts';
import type { ConversationView } from '../wire/conversation.ts';
import {
  type CostComparison,
  compareCosts,
  costUsd,
  createPrefixCache,
  createPromptEstimator,
  inputEquivalents,
  type SentPrompt,
  sumBill,
} from './cost.ts';
import {
  addTotals,
  type Balance,
  type Bill,
  type Conversation,
  EMPTY_TOTALS,
  type Investment,
  type LedgerRecord,
  type LedgerStore,
  type PrefixEntry,
  type RequestRecord,
  type Totals,
} from './store.ts';

interface BilledRequest
  extends Pick<RequestRecord, 'requestId' | 'atMs' | 'conversation' | 'model' | 'counts' | 'cut'> {
  /** Null when the body could not be parsed and passed through. */
  readonly view: ConversationView | null;
  /** Null when the received bytes went upstream. */
  readonly sent: SentPrompt | null;
  readonly usage: AssistantMessage['usage'];
}

export type RequestCost = ReturnType<CostLedger['recordRequest']>;

/** Records what each request cost and what it would have cost untouched. Never on the request path. */
export type CostLedger = Awaited<ReturnType<typeof openCostLedger>>;

interface CostLedgerDeps {
  readonly store: LedgerStore;
  readonly rule: LossRule;
  readonly clock: Clock;
  readonly log: ProxyLog;
}

const MAX_RECORDS = 2_000;

export async function openCostLedger({ store, rule, clock, log }: CostLedgerDeps) {
  const { apply, summary, ...queries } = createLedgerState(rule);
  const estimator = createPromptEstimator();
  const caches = { untouched: createPrefixCache(), sent: createPrefixCache() };
  let live: PrefixEntry[] = [];
  let records = 0;

  const trackLive = (touched: readonly PrefixEntry[]): void => {
    const keys = new Set(touched.map(({ key }) => key));
    live = [...live.filter(({ key, expiresAtMs }) => expiresAtMs > clock.now() && !keys.has(key)), ...touched];
  };

  for (const record of await store.load()) {
    apply(record);
    records += 1;
    if (record.kind !== 'request' && record.kind !== 'prefixes') continue;
    for (const entry of record.touched) caches.untouched.restore(entry);
    trackLive(record.touched);
  }
  if (records > MAX_RECORDS) compact();

  function compact(): void {
    records = 0;
    store.replace(summary(live)).catch(logFailure);
  }

  function logFailure(error: unknown): void {
    log.warn('ledger not written; a restart will lose the newest records', { error });
  }

  function add(record: LedgerRecord): void {
    const disabled = apply(record);
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
    recordRequest(request: BilledRequest) {
      const { model, usage } = request;
      const { output, ...billed } = usage;
      const { untouched, touched } = compareRequest(request, billed);
      trackLive(touched);
      const { requestId, atMs, conversation: id, view, sent, counts, cut } = request;
      const root = view === null ? '' : findConversationRoot(view);
      const about = { requestId, atMs, conversation: id, root, model, rewritten: sent !== null, counts, cut };
      add({ kind: 'request', ...about, billed, untouched, output, touched });
      const conversation = queries.conversation(request.conversation);
      return {
        billed,
        untouched,
        output,
        savedEquivalents: inputEquivalents(model, untouched) - inputEquivalents(model, billed),
        savedUsd: costUsd(model, untouched, 0) - costUsd(model, billed, 0),
        conversationSavedUsd: conversation?.balance.savedUsd ?? 0,
        /** Why trimming is off in the conversation; null while it is on. */
        off: conversation?.off?.because ?? null,
      };
    },
    /** @param isLast  nothing new is trimmed or added in this conversation from now on */
    recordRefusal: (conversation: string, isLast: boolean): void =>
      add({ kind: 'refused', atMs: clock.now(), conversation, isLast }),
    /** Records model calls made by comet-cc itself; `conversation` is '' when unknown. */
    recordOwnCall: (call: { conversation: string; calls: number; tokens: number; usd: number }): void =>
      add({ kind: 'own', atMs: clock.now(), ...call }),
    /** Why no memory text is added to this conversation now; null while it is. A loss leaves cuts that pay. */
    disabledBy(conversation: string): 'loss' | 'refusal' | null {
      const off = queries.conversation(conversation)?.off ?? null;
      return off === null ? null : off.because === REFUSED ? 'refusal' : 'loss';
    },
    ...queries,
    close: (): Promise<void> => store.close(),
  };
}

/** Lineage hash up to the first answer; two conversations share it only when one was forked from the other. */
export function findConversationRoot({ infos, lineage }: Pick<ConversationView, 'infos' | 'lineage'>): string {
  return lineage[infos.findIndex((info) => info.role === 'assistant')] ?? '';
}

const REFUSED = 'upstream refused a rewritten request';
const EMPTY_BILL: Bill = { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0 };
const MAX_DAYS = 400;
const MAX_CONVERSATIONS = 2_000;

export const NEW_BALANCE: Balance = { untouchedUsd: 0, savedUsd: 0, investments: [], streak: 0 };
const NEW_CONVERSATION = {
  ...{ lastAtMs: 0, root: '', rewritten: false, off: null },
  totals: EMPTY_TOTALS,
  balance: NEW_BALANCE,
};

/** The sums of all records. Applying records or their summary in order gives the same state. */
export function createLedgerState(rule: LossRule) {
  const days = new LruMap<string, Totals>(MAX_DAYS);
  const conversations = new LruMap<string, Conversation>(MAX_CONVERSATIONS);
  /** Of rewritten conversations: one gets a new root with each compaction by Claude Code. */
  const roots = new LruMap<string, true>(2 * MAX_CONVERSATIONS);

  const find = (id: string): Conversation | null => conversations.peek(id) ?? null;
  const sum = (totals: readonly Totals[]): Totals => totals.reduce(addTotals, EMPTY_TOTALS);

  function keep(conversation: Conversation): void {
    conversations.set(conversation.id, conversation);
    if (conversation.rewritten && conversation.root !== '') roots.set(conversation.root, true);
  }

  function add(atMs: number, id: string, amount: Partial<Totals>): void {
    const day = localDay(atMs);
    days.set(day, addTotals(days.get(day) ?? EMPTY_TOTALS, amount));
    if (id === '') return;
    const balance = find(id) ?? { id, ...NEW_CONVERSATION };
    keep({ ...balance, lastAtMs: Math.max(balance.lastAtMs, atMs), totals: addTotals(balance.totals, amount) });
  }

  function turnOff({ atMs, conversation }: { atMs: number; conversation: string }, because: string) {
    const balance = conversations.get(conversation);
    if (balance === undefined || balance.off !== null) return null;
    const next = { ...balance, off: { atMs, because } };
    keep(next);
    return next;
  }

  function addRequest(record: RequestRecord): Conversation | null {
    add(record.atMs, record.conversation, toTotals(record));
    const previous = find(record.conversation);
    if (previous === null || !record.counts) return null;
    const balance = updateBalance(previous.balance, toBalanceChange(record), rule);
    const rewritten = previous.rewritten || record.rewritten;
    // A loss pauses trimming until the plan has saved it, or the conversation has grown beyond it.
    const off = balance.streak === 0 && previous.off?.because !== REFUSED ? null : previous.off;
    keep({ ...previous, root: record.root || previous.root, rewritten, balance, off });
    return balance.streak < LOSS_LIMIT ? null : turnOff(record, describeLoss(balance));
  }

  return {
    /** @returns the conversation for which this record turned trimming off */
    apply(record: LedgerRecord): Conversation | null {
      if (record.kind === 'request') return addRequest(record);
      if (record.kind === 'refused') {
        add(record.atMs, record.conversation, { refused: 1 });
        return record.isLast ? turnOff(record, REFUSED) : null;
      }
      if (record.kind === 'own') {
        const { calls: ownCalls, tokens: ownTokens, usd: ownUsd } = record;
        add(record.atMs, record.conversation, { ownCalls, ownTokens, ownUsd });
      }
      if (record.kind === 'day') days.set(record.day, record.totals);
      if (record.kind === 'conversation') keep(record.conversation);
      return null;
    },
    /** Records that replace all others; `live` are the unexpired prefixes. */
    summary: (live: readonly PrefixEntry[]): LedgerRecord[] => [
      ...[...days].map(([day, totals]) => ({ kind: 'day', day, totals }) as const),
      ...[...conversations.values()].map((conversation) => ({ kind: 'conversation', conversation }) as const),
      { kind: 'prefixes', touched: live },
    ],
    conversation: find,
    /** Whether a rewritten request was sent in this conversation or in the one it was forked from. */
    wasRewritten: (id: string, root: string): boolean =>
      find(id)?.rewritten === true || (root !== '' && roots.has(root)),
    totals: (sinceMs: number): Totals =>
      sum([...days].flatMap(([day, totals]) => (day >= localDay(sinceMs) ? [totals] : []))),
    /** Of the sessions with requests since then; the calls of an import, which the user asked for, are not in it. */
    recentTotals(sinceMs: number): Totals {
      const all = [...conversations.values()].filter(({ lastAtMs }) => lastAtMs >= sinceMs);
      return sum(all.flatMap(({ totals }) => (totals.requests > 0 ? [totals] : [])));
    },
    /** Totals by day (`YYYY-MM-DD`, in the zone of this machine), oldest first. */
    days: (): readonly (readonly [string, Totals])[] => [...days].sort(([one], [other]) => (one < other ? -1 : 1)),
    /** Newest first. */
    disabledConversations: (): readonly Conversation[] =>
      [...conversations.values()].filter(({ off }) => off !== null).reverse(),
  };
}

function toTotals({ model, billed, untouched, output }: RequestRecord): Partial<Totals> {
  const { input: _, ...cached } = billed;
  return {
    ...cached,
    requests: 1,
    original: sumBill(untouched),
    sent: sumBill(billed),
    output,
    untouchedEquivalents: inputEquivalents(model, untouched),
    sentEquivalents: inputEquivalents(model, billed),
    untouchedUsd: costUsd(model, untouched, output),
    sentUsd: costUsd(model, billed, output),
  };
}

function toBalanceChange({ model, billed, untouched, cut }: RequestRecord): BalanceChange {
  const untouchedUsd = costUsd(model, untouched, 0);
  return {
    untouchedUsd,
    savedUsd: untouchedUsd - costUsd(model, billed, 0),
    tokenUsd: costUsd(model, { ...EMPTY_BILL, input: 1 }, 0),
    returnUsd: cut ? costUsd(model, { ...EMPTY_BILL, cacheRead: sumBill(untouched) - sumBill(billed) }, 0) : null,
  };
}

function describeLoss({ savedUsd, untouchedUsd }: Balance): string {
  const loss = `$${(-savedUsd).toFixed(4)} (${((100 * -savedUsd) / untouchedUsd).toFixed(1)} %)`;
  return `${LOSS_LIMIT} requests in a row ended with a net loss: ${loss} more than untouched`;
}

export interface BalanceChange {
  readonly untouchedUsd: number;
  readonly savedUsd: number;
  /** Price of one token of uncached input. */
  readonly tokenUsd: number;
  /** For the first request with a cut: the minimum that each later request saves; null otherwise. */
  readonly returnUsd: number | null;
}

export type LossRule = Pick<Config['ledger'], 'tolerance' | 'credit' | 'longestHorizon'>;

/** Trimming ends after this many consecutive requests with a net loss. */
export const LOSS_LIMIT = 3;

/**
 * A net loss: the conversation has cost more than untouched, beyond what its cuts may still pay back and what memory may
 * cost. The outstanding cost of a cut falls linearly to zero over its horizon.
 */
export function updateBalance(balance: Balance, movement: BalanceChange, rule: LossRule): Balance {
  const untouchedUsd = balance.untouchedUsd + movement.untouchedUsd;
  const savedUsd = balance.savedUsd + movement.savedUsd;
  const running = balance.investments.map((one) => ({ ...one, left: one.left - 1 })).filter(({ left }) => left > 0);
  const made = toInvestment(movement, rule);
  const investments = made === null ? running : [...running, made];
  const tolerated = Math.max(rule.tolerance * untouchedUsd, rule.credit * movement.tokenUsd);
  // What cuts cost and may still pay back.
  const outstanding = investments.reduce((sum, { usd, horizon, left }) => sum + (usd * left) / horizon, 0);
  const isLoss = savedUsd + outstanding < -tolerated;
  return { untouchedUsd, savedUsd, investments, streak: isLoss ? balance.streak + 1 : 0 };
}

function toInvestment({ savedUsd, returnUsd }: BalanceChange, { longestHorizon }: LossRule): Investment | null {
  if (returnUsd === null || returnUsd <= 0 || savedUsd >= 0) return null;
  const horizon = Math.min(longestHorizon, Math.ceil(-savedUsd / returnUsd));
  return { usd: -savedUsd, horizon, left: horizon };
}
