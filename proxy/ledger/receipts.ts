import { LruMap } from '../../common/map.ts';
import type { Finding, ProxyLog } from '../ports.ts';
import type { RequestCost } from './ledger.ts';
import type { Bill } from './prefix-cache.ts';

interface BodyDigest {
  readonly bytes: number;
  readonly sha256: string;
}

export interface ReceiptEdit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

export interface ReceiptAddition {
  readonly channel: 'system' | 'preamble' | 'system-message' | 'user-block';
  /** Path in the sent body. */
  readonly position: string;
  readonly text: string;
  readonly nodes: readonly string[];
  readonly reason: string;
  /** How each recalled node was found. */
  readonly found?: readonly Finding[];
}

/** What was done to one request. Applying `edits` to the received body gives the sent body, byte for byte. */
export interface Receipt {
  readonly request_id: string;
  readonly session_id: string;
  readonly at: string;
  readonly class: string;
  readonly epoch: number | null;
  readonly received: BodyDigest;
  readonly sent: BodyDigest;
  readonly dropped: readonly {
    /** Message indices of the received body, inclusive. */
    readonly from: number;
    readonly to: number;
    readonly messages: number;
    readonly tokens: number;
    readonly nodes: readonly string[];
  }[];
  readonly added: readonly ReceiptAddition[];
  readonly thinking_stripped: number;
  readonly economics: Economics;
  /** HTTP status of the response; 0 before it arrives. */
  readonly status: number;
  /** The error text of a refusal, '' otherwise. */
  readonly refusal: string;
  /** Bytes `[start, end)` of the received body, replaced by `text`. */
  readonly edits: readonly ReceiptEdit[];
}

/** Prompt tokens by price. */
interface BillSheet {
  readonly input: number;
  readonly cache_read: number;
  readonly cache_write_5m: number;
  readonly cache_write_1h: number;
}

interface Economics {
  /** Prompt tokens as billed and as the ledger computes them; estimated from bytes before the bill arrives. */
  readonly received_tokens: number;
  readonly sent_tokens: number;
  readonly saved_tokens: number;
  readonly decision: string;
  /** Null before the bill arrives. */
  readonly billed: (BillSheet & { readonly output: number }) | null;
  readonly untouched: BillSheet | null;
  /** In tokens of uncached input. */
  readonly saved_equivalents: number;
  readonly saved_usd: number;
  /** Of the conversation up to this request. */
  readonly conversation_saved_usd: number;
  /** Why trimming is off in this conversation; null while it is on. */
  readonly trimming_off: string | null;
}

export interface ReceiptResponse {
  readonly status: number;
  readonly refusal: string;
  readonly account: RequestCost | null;
}

function settleReceipt(receipt: Receipt, { status, refusal, account }: ReceiptResponse): Receipt {
  if (account === null) return { ...receipt, status, refusal };
  const untouched = toSheet(account.untouched);
  const billed = toSheet(account.billed);
  const received_tokens = sumSheet(untouched);
  const sent_tokens = sumSheet(billed);
  const economics = {
    ...receipt.economics,
    received_tokens,
    sent_tokens,
    saved_tokens: received_tokens - sent_tokens,
    billed: { ...billed, output: account.output },
    untouched,
    saved_equivalents: account.savedEquivalents,
    saved_usd: account.savedUsd,
    conversation_saved_usd: account.conversationSavedUsd,
    trimming_off: account.off,
  };
  return { ...receipt, status, refusal, economics };
}

function toSheet({ input, cacheRead, cacheWrite5m, cacheWrite1h }: Bill): BillSheet {
  return { input, cache_read: cacheRead, cache_write_5m: cacheWrite5m, cache_write_1h: cacheWrite1h };
}

function sumSheet(sheet: BillSheet): number {
  return sheet.input + sheet.cache_read + sheet.cache_write_5m + sheet.cache_write_1h;
}

/** Persists receipts. */
export interface ReceiptStore {
  /** Oldest first, without unreadable ones. */
  load(): Promise<readonly Receipt[]>;
  append(receipt: Receipt): Promise<void>;
  replace(receipts: readonly Receipt[]): Promise<void>;
  /** Resolves once everything is written. */
  close(): Promise<void>;
}

/** Persists nothing. */
export function createMemoryReceipts(): ReceiptStore {
  const receipts: Receipt[] = [];
  return {
    load: async () => [...receipts],
    append: async (receipt) => void receipts.push(receipt),
    replace: async (fresh) => void receipts.splice(0, receipts.length, ...fresh),
    close: async () => {},
  };
}

/** The receipts of the newest requests. */
export interface Receipts {
  /** Adds a request that goes upstream now. `create` runs later, off the request path. */
  add(requestId: string, create: () => Receipt): void;
  settle(requestId: string, response: ReceiptResponse): void;
  /** Newest first, including requests without a response. */
  list(): readonly Receipt[];
  /** Drops the receipts that name one of these nodes, also on disk. */
  forget(nodeIds: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export interface ReceiptsDeps {
  readonly store: ReceiptStore;
  /** For refusals: they may quote the request. */
  readonly redact: (text: string) => string;
  /** Maximum number of receipts. */
  readonly most: number;
  readonly log: ProxyLog;
}

/** Requests without a response whose receipts are still held. */
const MAX_PENDING = 256;

export async function openReceipts({ store, redact, most, log }: ReceiptsDeps): Promise<Receipts> {
  const pending = new LruMap<string, () => Receipt>(MAX_PENDING);
  let settled = [...(await store.load())].slice(-most);
  let written = settled.length;

  function logFailure(error: unknown): void {
    log.warn('receipt not written; a restart will lose it', { error });
  }

  function save(receipt: Receipt): void {
    settled = [...settled, receipt].slice(-most);
    written += 1;
    if (written <= 2 * most) return void store.append(receipt).catch(logFailure);
    written = settled.length;
    store.replace(settled).catch(logFailure);
  }

  return {
    add: (requestId, create) => void pending.set(requestId, create),
    settle(requestId, response) {
      const create = pending.get(requestId);
      pending.delete(requestId);
      if (create === undefined || most === 0) return;
      save(settleReceipt(create(), { ...response, refusal: redact(response.refusal) }));
    },
    list: () => [...settled, ...[...pending.values()].map((create) => create())].reverse(),
    async forget(nodeIds) {
      const forgotten = new Set(nodeIds);
      const stays = (receipt: Receipt): boolean =>
        ![...receipt.added, ...receipt.dropped].some(({ nodes }) => nodes.some((id) => forgotten.has(id)));
      for (const [requestId, create] of pending) if (!stays(create())) pending.delete(requestId);
      const left = settled.filter(stays);
      if (left.length === settled.length) return;
      settled = left;
      written = settled.length;
      await store.replace(settled);
    },
    close: () => store.close(),
  };
}
