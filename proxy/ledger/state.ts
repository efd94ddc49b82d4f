import { costUsd, inputEquivalents, sumBill } from './cost.ts';
import {
  addTotals,
  type Conversation,
  EMPTY_TOTALS,
  type LedgerRecord,
  type RequestRecord,
  type Totals,
} from './entry.ts';
import { LOSS_LIMIT, type LossRule, NEW_BALANCE, updateBalance } from './loss-detector.ts';
import type { PrefixEntry } from './prefix-cache.ts';

const MAX_DAYS = 400;
const MAX_CONVERSATIONS = 2_000;

/** The sums of all records. Applying records or their summary in order gives the same state. */
export class LedgerState {
  readonly #days = new Map<string, Totals>();
  readonly #conversations = new Map<string, Conversation>();
  readonly #roots = new Set<string>();
  readonly #rule: LossRule;

  constructor(rule: LossRule) {
    this.#rule = rule;
  }

  /** @returns the conversation for which this record turned trimming off */
  apply(record: LedgerRecord): Conversation | null {
    switch (record.kind) {
      case 'request':
        return this.#request(record);
      case 'refused':
        this.#add(record.atMs, record.conversation, { refused: 1 });
        return null;
      case 'own': {
        const { calls: ownCalls, tokens: ownTokens, usd: ownUsd } = record;
        this.#add(record.atMs, record.conversation, { ownCalls, ownTokens, ownUsd });
        return null;
      }
      case 'day':
        this.#days.set(record.day, addTotals(EMPTY_TOTALS, record.totals));
        return null;
      case 'conversation':
        this.#keep(record.conversation);
        return null;
      case 'prefixes':
        return null;
    }
  }

  conversation(id: string): Conversation | null {
    return this.#conversations.get(id) ?? null;
  }

  /** Whether a rewritten request was sent in this conversation or in the one it was forked from. */
  wasRewritten(id: string, root: string): boolean {
    return this.#conversations.get(id)?.rewritten === true || (root !== '' && this.#roots.has(root));
  }

  /** Conversations with trimming off, newest first. */
  off(): readonly Conversation[] {
    return [...this.#conversations.values()].filter((one) => one.off !== null).reverse();
  }

  /** Sums of the days since `sinceMs`. */
  since(sinceMs: number): Totals {
    const first = formatDay(sinceMs);
    const days = [...this.#days].filter(([day]) => day >= first);
    return days.reduce((sum, [, totals]) => addTotals(sum, totals), EMPTY_TOTALS);
  }

  /** Records that replace all others; `live` are the unexpired prefixes. */
  summary(live: readonly PrefixEntry[]): LedgerRecord[] {
    return [
      ...[...this.#days].map(([day, totals]) => ({ kind: 'day', day, totals }) as const),
      ...[...this.#conversations.values()].map((conversation) => ({ kind: 'conversation', conversation }) as const),
      { kind: 'prefixes', touched: live },
    ];
  }

  #request(record: RequestRecord): Conversation | null {
    const { model, billed, untouched, output } = record;
    const untouchedUsd = costUsd(model, untouched, 0);
    const savedUsd = untouchedUsd - costUsd(model, billed, 0);
    this.#add(record.atMs, record.conversation, {
      requests: 1,
      original: sumBill(untouched),
      sent: sumBill(billed),
      cacheRead: billed.cacheRead,
      cacheWrite5m: billed.cacheWrite5m,
      cacheWrite1h: billed.cacheWrite1h,
      output,
      untouchedEquivalents: inputEquivalents(model, untouched),
      sentEquivalents: inputEquivalents(model, billed),
      untouchedUsd: costUsd(model, untouched, output),
      sentUsd: costUsd(model, billed, output),
    });
    const known = this.#conversations.get(record.conversation);
    if (known === undefined || !record.counts) return null;
    const fewer = sumBill(untouched) - sumBill(billed);
    const returnUsd = record.cut
      ? costUsd(model, { input: 0, cacheRead: fewer, cacheWrite5m: 0, cacheWrite1h: 0 }, 0)
      : null;
    const tokenUsd = costUsd(model, { input: 1, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0 }, 0);
    const balance = updateBalance(known.balance, { untouchedUsd, savedUsd, tokenUsd, returnUsd }, this.#rule);
    const ends = known.off === null && balance.streak >= LOSS_LIMIT;
    const off = ends ? { atMs: record.atMs, because: describeLoss(balance) } : known.off;
    const rewritten = known.rewritten || record.rewritten;
    const next = { ...known, root: record.root || known.root, rewritten, balance, off };
    this.#keep(next);
    return ends ? next : null;
  }

  #add(atMs: number, id: string, amount: Partial<Totals>): void {
    const day = formatDay(atMs);
    this.#days.set(day, addTotals(this.#days.get(day) ?? EMPTY_TOTALS, amount));
    if (this.#days.size > MAX_DAYS) this.#days.delete([...this.#days.keys()].sort()[0] as string);
    if (id === '') return;
    const known = this.#conversations.get(id) ?? newConversation(id);
    const lastAtMs = Math.max(known.lastAtMs, atMs);
    this.#keep({ ...known, lastAtMs, totals: addTotals(known.totals, amount) });
  }

  #keep(conversation: Conversation): void {
    this.#conversations.delete(conversation.id);
    this.#conversations.set(conversation.id, conversation);
    if (conversation.rewritten && conversation.root !== '') this.#root(conversation.root);
    if (this.#conversations.size <= MAX_CONVERSATIONS) return;
    const [oldest] = this.#conversations.values();
    if (oldest === undefined) return;
    this.#conversations.delete(oldest.id);
    this.#roots.delete(oldest.root);
  }

  /** A conversation gets a new root with each compaction by Claude Code. */
  #root(root: string): void {
    this.#roots.delete(root);
    this.#roots.add(root);
    const [oldest] = this.#roots;
    if (this.#roots.size > 2 * MAX_CONVERSATIONS && oldest !== undefined) this.#roots.delete(oldest);
  }
}

function newConversation(id: string): Conversation {
  const initial = { lastAtMs: 0, root: '', rewritten: false, off: null };
  return { id, ...initial, totals: EMPTY_TOTALS, balance: NEW_BALANCE };
}

function describeLoss({ savedUsd, untouchedUsd }: Conversation['balance']): string {
  const percent = ((100 * -savedUsd) / untouchedUsd).toFixed(1);
  return `${LOSS_LIMIT} requests in a row ended with a net loss: $${(-savedUsd).toFixed(4)} (${percent} %) more than untouched`;
}

/** `YYYY-MM-DD`, UTC. */
function formatDay(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}
