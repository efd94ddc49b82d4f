import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { LruMap } from '../../common/map.ts';
import type { Finding, GivenSlice, Phase, ProxyLog } from '../ports.ts';
import { sumBill } from './cost.ts';
import type { RequestCost } from './ledger.ts';
import { type Bill, openJsonlFile, type RecordStore } from './store.ts';

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
  readonly found?: readonly Finding[];
  /** Recalled for the prompt of this request; absent where an earlier one recalled it. */
  readonly current?: true;
}

/** What was done to one request. Applying `edits` to the received body gives the sent body, byte for byte. */
export interface Receipt {
  readonly request_id: string;
  readonly session_id: string;
  readonly at: string;
  readonly class: string;
  /** Key of the turn in the journal, which has its prompt; absent in receipts of earlier versions. */
  readonly turn?: string;
  readonly epoch: number | null;
  readonly received: { readonly bytes: number; readonly sha256: string };
  readonly sent: Receipt['received'];
  readonly dropped: readonly {
    /** Message indices of the received body, inclusive. */
    readonly from: number;
    readonly to: number;
    readonly messages: number;
    readonly tokens: number;
    readonly nodes: readonly string[];
  }[];
  readonly added: readonly ReceiptAddition[];
  /** What a hook gave the subagent, which came with the received body; absent where no hook was called. */
  readonly facts?: GivenSlice;
  readonly thinking_stripped: number;
  readonly economics: Economics;
  /** HTTP status of the response; 0 before it arrives. */
  readonly status: number;
  /** The error text of a refusal, '' otherwise. */
  readonly refusal: string;
  /** How long each step took; absent in receipts of earlier versions. */
  readonly phases?: readonly Phase[];
  /** Bytes `[start, end)` of the received body, replaced by `text`. */
  readonly edits: readonly ReceiptEdit[];
}

type BillSheet = ReturnType<typeof toSheet>;

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

type ReceiptResponse = Pick<Receipt, 'status' | 'refusal'> & { readonly account: RequestCost | null };

function settleReceipt(receipt: Receipt, { status, refusal, account }: ReceiptResponse): Receipt {
  if (account === null) return { ...receipt, status, refusal };
  const [received_tokens, sent_tokens] = [sumBill(account.untouched), sumBill(account.billed)];
  const economics = {
    ...receipt.economics,
    received_tokens,
    sent_tokens,
    saved_tokens: received_tokens - sent_tokens,
    billed: { ...toSheet(account.billed), output: account.output },
    untouched: toSheet(account.untouched),
    saved_equivalents: account.savedEquivalents,
    saved_usd: account.savedUsd,
    conversation_saved_usd: account.conversationSavedUsd,
    trimming_off: account.off,
  };
  return { ...receipt, status, refusal, economics };
}

function toSheet({ input, cacheRead, cacheWrite5m, cacheWrite1h }: Bill) {
  return { input, cache_read: cacheRead, cache_write_5m: cacheWrite5m, cache_write_1h: cacheWrite1h };
}

export type ReceiptStore = RecordStore<Receipt>;

export type Receipts = Awaited<ReturnType<typeof openReceipts>>;

interface ReceiptsDeps {
  readonly store: ReceiptStore;
  /** For refusals: they may quote the request. */
  readonly redact: (text: string) => string;
  readonly most: number;
  readonly log: ProxyLog;
}

/** Requests without a response whose receipts are still held. */
const MAX_PENDING = 256;

export async function openReceipts({ store, redact, most, log }: ReceiptsDeps) {
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
    /** Adds a request that goes upstream now. `create` runs later, off the request path. */
    add(requestId: string, create: () => Receipt): void {
      let made: Receipt | undefined;
      pending.set(requestId, () => (made ??= create()));
    },
    settle(requestId: string, response: ReceiptResponse): void {
      const create = pending.get(requestId);
      pending.delete(requestId);
      if (create === undefined || most === 0) return;
      save(settleReceipt(create(), { ...response, refusal: redact(response.refusal) }));
    },
    /** Newest first, including requests without a response. */
    list: (): readonly Receipt[] => [...settled, ...[...pending.values()].map((create) => create())].reverse(),
    /** Of requests of its main loop that have a response, newest first. */
    ofSession: (sessionId: string): readonly Receipt[] =>
      settled.filter((one) => one.session_id === sessionId && one.class === 'main').reverse(),
    /** Drops the receipts that name one of these nodes, also on disk. */
    async forget(nodeIds: readonly string[]): Promise<void> {
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
    close: (): Promise<void> => store.close(),
  };
}

/** Texts of at least this length are written once and referenced by id. */
const SHARED_CHARS = 100;

/**
 * One JSON line per receipt and one per long text, because every request of a conversation adds the same texts. Each
 * receipt is encoded once, because a replace writes hundreds of them again.
 * @param redact  applied to each added text
 */
export function openReceiptFile(file: string, redact: (text: string) => string): ReceiptStore {
  const lines = openJsonlFile(file);
  const encoded = new WeakMap<Receipt, { readonly line: string; readonly ids: ReadonlySet<string> }>();
  /** Redacted shared texts by id, and ids by original text. */
  let texts = new Map<string, string>();
  let idsOf = new Map<string, string>();
  let writtenIds = new Set<string>();

  function shareText(text: string): string {
    const textId = idsOf.get(text);
    if (textId !== undefined) return textId;
    const clean = redact(text);
    const id = createHash('sha256').update(clean).digest('base64').slice(0, 22);
    idsOf.set(text, id);
    texts.set(id, clean);
    return id;
  }

  function encodeLines(receipt: Receipt): string[] {
    const { line, ids } = encoded.get(receipt) ?? encode(receipt);
    const fresh = [...ids].filter((id) => !writtenIds.has(id));
    for (const id of fresh) writtenIds.add(id);
    return [...fresh.map((id) => JSON.stringify({ id, text: texts.get(id) })), line];
  }

  function encode(receipt: Receipt) {
    const ids = new Set<string>();
    const line = JSON.stringify(receipt, (key, value: unknown) => {
      if (typeof value !== 'string' || key !== 'text') return value;
      if (value.length < SHARED_CHARS) return redact(value);
      const id = shareText(value);
      ids.add(id);
      return { id };
    });
    const result = { line, ids };
    encoded.set(receipt, result);
    return result;
  }

  return {
    async load() {
      const receipts = (await readFile(file, 'utf8').catch(() => '')).split('\n').flatMap((line) => {
        const ids = new Set<string>();
        const receipt = parseLine(line, texts, ids);
        if (receipt !== null) encoded.set(receipt, { line, ids });
        return receipt ?? [];
      });
      writtenIds = new Set(texts.keys());
      return receipts;
    },
    append: (receipt) =>
      lines.append((isEmpty) => {
        if (isEmpty) writtenIds = new Set();
        return encodeLines(receipt);
      }),
    replace: (receipts) =>
      lines.replace(() => {
        writtenIds = new Set();
        const all = receipts.flatMap(encodeLines);
        texts = new Map([...texts].filter(([id]) => writtenIds.has(id)));
        idsOf = new Map([...idsOf].filter(([, id]) => writtenIds.has(id)));
        return all;
      }),
    close: () => lines.close(),
  };
}

/** Null for a torn line, a receipt with a missing text, and a shared text, which goes into `texts`. */
function parseLine(line: string, texts: Map<string, string>, ids: Set<string>): Receipt | null {
  if (line === '') return null;
  try {
    const receipt = JSON.parse(line, (key, value: unknown) => {
      if (key !== 'text' || typeof value !== 'object' || value === null) return value;
      const id = String((value as { id?: unknown }).id);
      const text = texts.get(id);
      if (text === undefined) throw new Error('shared text is missing');
      ids.add(id);
      return text;
    }) as { id?: unknown; text?: unknown; request_id?: unknown; edits?: unknown };
    if (typeof receipt.id === 'string' && typeof receipt.text === 'string') {
      texts.set(receipt.id, receipt.text);
      return null;
    }
    return typeof receipt.request_id === 'string' && Array.isArray(receipt.edits)
      ? (receipt as unknown as Receipt)
      : null;
  } catch {
    return null;
  }
}
