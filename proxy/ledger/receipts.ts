import { LruMap } from '../../common/lru.ts';
import type { ProxyLog } from '../ports.ts';
import {
  createReceipt,
  type Receipt,
  type ReceiptInput,
  type ReceiptResponse,
  settleReceipt,
} from '../rewrite/receipt.ts';
import type { RewriteResult } from '../rewrite/request-context.ts';
import type { ReceiptStore } from './receipt-store.ts';

/** The newest requests, each with what was done to it. */
export interface Receipts {
  /** It goes out now; what it took is worked out when there is time. */
  add(made: RewriteResult, atMs: number): void;
  settle(requestId: string, answered: ReceiptResponse): void;
  /** Newest first, those that still wait for their answer included. */
  list(): readonly Receipt[];
  /** Drops those that name one of these nodes, also on disk. */
  forget(nodeIds: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export interface ReceiptsDeps {
  readonly store: ReceiptStore;
  /** For what upstream said: it may quote what it was sent. */
  readonly redact: (text: string) => string;
  /** Requests that are kept. */
  readonly most: number;
  readonly log: ProxyLog;
}

/** Requests that may wait for an answer at one time and still be explained. */
const MOST_WAITING = 256;

export async function openReceipts({ store, redact, most, log }: ReceiptsDeps): Promise<Receipts> {
  const waiting = new LruMap<string, ReceiptInput>(MOST_WAITING);
  let kept = [...(await store.load())].slice(-most);
  let written = kept.length;

  function unwritten(error: unknown): void {
    log.warn('a receipt could not be written; it is gone after a restart', { error });
  }

  function keep(receipt: Receipt): void {
    kept = [...kept, receipt].slice(-most);
    written += 1;
    if (written <= 2 * most) return void store.append(receipt).catch(unwritten);
    written = kept.length;
    store.replace(kept).catch(unwritten);
  }

  return {
    add({ passage, plan, spliced, decision }, atMs) {
      const { request, view, sessionId, kind } = passage;
      const touched = spliced !== null && spliced.edits.length > 0;
      const what = touched ? { plan, spliced } : { plan: null, spliced: null };
      waiting.set(request.requestId, { requestId: request.requestId, sessionId, atMs, kind, decision, view, ...what });
    },
    settle(requestId, answered) {
      const input = waiting.get(requestId);
      if (input === undefined || most === 0) return void waiting.delete(requestId);
      waiting.delete(requestId);
      keep(settleReceipt(createReceipt(input), { ...answered, refusal: redact(answered.refusal) }));
    },
    list: () => [...kept, ...[...waiting.values()].map(createReceipt)].reverse(),
    async forget(nodeIds) {
      const gone = new Set(nodeIds);
      const stays = (receipt: Receipt): boolean =>
        ![...receipt.added, ...receipt.dropped].some(({ nodes }) => nodes.some((id) => gone.has(id)));
      for (const [requestId, input] of waiting) if (!stays(createReceipt(input))) waiting.delete(requestId);
      const left = kept.filter(stays);
      if (left.length === kept.length) return;
      kept = left;
      written = kept.length;
      await store.replace(kept);
    },
    close: () => store.close(),
  };
}
