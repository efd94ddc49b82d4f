import { createHash } from 'node:crypto';
import { type ConversationView, estimateTokens } from '../wire/conversation.ts';
import type { Spliced } from '../wire/splice.ts';
import { findHeadEnd } from '../wire/split-turns.ts';
import { type EpochPlan, type Finding, locatePlan } from './plan.ts';
import { minimizeEdits } from './receipt-edits.ts';

interface BodyDigest {
  readonly bytes: number;
  readonly sha256: string;
}

export interface ReceiptAddition {
  readonly channel: 'system' | 'preamble' | 'system-message' | 'user-block';
  /** Where it stands in the body sent, as a path. */
  readonly position: string;
  readonly text: string;
  readonly nodes: readonly string[];
  readonly reason: string;
  /** How each of `nodes` was found, where a prompt recalled them. */
  readonly found?: readonly Finding[];
}

/** What was done to one request. `edits` applied to the body received give the body sent, byte for byte. */
export interface Receipt {
  readonly request_id: string;
  readonly session_id: string;
  readonly at: string;
  readonly class: string;
  readonly epoch: number | null;
  readonly received: BodyDigest;
  readonly sent: BodyDigest;
  readonly dropped: readonly {
    /** Message indices of the body received, both included. */
    readonly from: number;
    readonly to: number;
    readonly messages: number;
    readonly tokens: number;
    readonly nodes: readonly string[];
  }[];
  readonly added: readonly ReceiptAddition[];
  readonly thinking_stripped: number;
  readonly economics: Economics;
  /** HTTP status of the answer; 0 while there is none. */
  readonly status: number;
  /** What upstream said when it refused, '' otherwise. */
  readonly refusal: string;
  /** Bytes `[start, end)` of the body received, replaced by `text`. */
  readonly edits: readonly { readonly start: number; readonly end: number; readonly text: string }[];
}

/** Prompt tokens by how they are billed. */
interface BillSheet {
  readonly input: number;
  readonly cache_read: number;
  readonly cache_write_5m: number;
  readonly cache_write_1h: number;
}

interface Economics {
  /** Of the prompt: as billed and as the ledger reckons; estimates from bytes while there is no bill. */
  readonly received_tokens: number;
  readonly sent_tokens: number;
  readonly saved_tokens: number;
  readonly decision: string;
  /** Null while there is no bill. */
  readonly billed: (BillSheet & { readonly output: number }) | null;
  readonly untouched: BillSheet | null;
  /** In tokens of uncached input. */
  readonly saved_equivalents: number;
  readonly saved_usd: number;
  /** Of the conversation until then. */
  readonly conversation_saved_usd: number;
  /** Why nothing new is trimmed or added in this conversation; null while it is. */
  readonly trimming_off: string | null;
}

/** What the answer told. */
export interface ReceiptResponse {
  readonly status: number;
  readonly refusal: string;
  readonly account: {
    readonly billed: Bill;
    readonly untouched: Bill;
    readonly output: number;
    readonly savedEquivalents: number;
    readonly savedUsd: number;
    readonly conversationSavedUsd: number;
    readonly off: string | null;
  } | null;
}

interface Bill {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite5m: number;
  readonly cacheWrite1h: number;
}

export interface ReceiptInput {
  readonly requestId: string;
  readonly sessionId: string;
  readonly atMs: number;
  readonly kind: string;
  /** Why the request got this plan: `replay`, `recall`, or what started the epoch. */
  readonly decision: string;
  readonly view: ConversationView;
  readonly plan: EpochPlan | null;
  readonly spliced: Spliced | null;
}

export function createReceipt({ view, plan, spliced, ...input }: ReceiptInput): Receipt {
  const sent = spliced?.body ?? view.body;
  const received_tokens = estimateTokens(view.body.length);
  const sent_tokens = estimateTokens(sent.length);
  const received = digestOf(view.body);
  return {
    request_id: input.requestId,
    session_id: input.sessionId,
    at: new Date(input.atMs).toISOString(),
    class: input.kind,
    epoch: plan?.epoch ?? null,
    received,
    sent: sent === view.body ? received : digestOf(sent),
    dropped: plan === null ? [] : dropped(view, plan),
    added: plan === null || spliced === null ? [] : added(view, plan, spliced),
    thinking_stripped: spliced?.thinkingStripped ?? 0,
    economics: {
      received_tokens,
      sent_tokens,
      saved_tokens: received_tokens - sent_tokens,
      decision: input.decision,
      billed: null,
      untouched: null,
      saved_equivalents: 0,
      saved_usd: 0,
      conversation_saved_usd: 0,
      trimming_off: null,
    },
    status: 0,
    refusal: '',
    edits: minimizeEdits(view, spliced?.edits ?? []),
  };
}

/** The receipt with what the answer told. */
export function settleReceipt(receipt: Receipt, { status, refusal, account }: ReceiptResponse): Receipt {
  if (account === null) return { ...receipt, status, refusal };
  const { savedEquivalents: saved_equivalents, savedUsd: saved_usd, conversationSavedUsd, off } = account;
  const received_tokens = totalOf(account.untouched);
  const sent_tokens = totalOf(account.billed);
  const economics = {
    ...receipt.economics,
    received_tokens,
    sent_tokens,
    saved_tokens: received_tokens - sent_tokens,
    billed: { ...sheetOf(account.billed), output: account.output },
    untouched: sheetOf(account.untouched),
    saved_equivalents,
    saved_usd,
    conversation_saved_usd: conversationSavedUsd,
    trimming_off: off,
  };
  return { ...receipt, status, refusal, economics };
}

function totalOf({ input, cacheRead, cacheWrite5m, cacheWrite1h }: Bill): number {
  return input + cacheRead + cacheWrite5m + cacheWrite1h;
}

function sheetOf({ input, cacheRead, cacheWrite5m, cacheWrite1h }: Bill): BillSheet {
  return { input, cache_read: cacheRead, cache_write_5m: cacheWrite5m, cache_write_1h: cacheWrite1h };
}

function digestOf(body: Buffer): BodyDigest {
  return { bytes: body.length, sha256: createHash('sha256').update(body).digest('hex') };
}

function dropped(view: ConversationView, plan: EpochPlan): Receipt['dropped'] {
  const at = locatePlan(plan, view.lineage);
  const ranges = (at?.rounds ?? []).map(({ cut, start, end }) => ({ start, end, nodes: cut.nodeIds }));
  if (plan.cut !== null) ranges.unshift({ start: findHeadEnd(view), end: at?.cutEnd ?? 0, nodes: plan.cut.nodeIds });
  return ranges.flatMap(({ start, end, nodes }) => {
    const gone = view.infos.slice(start, end);
    const tokens = gone.reduce((total, info) => total + info.tokens, 0);
    return gone.length === 0 ? [] : [{ from: start, to: end - 1, messages: gone.length, tokens, nodes }];
  });
}

function added(view: ConversationView, plan: EpochPlan, spliced: Spliced): ReceiptAddition[] {
  const additions: ReceiptAddition[] = [];
  if (plan.systemBlock !== null) {
    const position = `system.${view.scan.system?.length ?? 1}`;
    const { systemBlock: text, systemNodeIds: nodes, systemFound: found } = plan;
    const reason = 'brief and standing memory of this epoch';
    const addition = { channel: 'system', position, text, nodes, reason } as const;
    additions.push(
      found === undefined ? addition : { ...addition, reason: `${reason}, and what a prompt recalled`, found },
    );
  }
  const where = (text: string): { position: string; isSystem: boolean } | null => {
    const index = spliced.messages.findIndex((message) => Buffer.isBuffer(message) && message.includes(jsonOf(text)));
    if (index < 0) return null;
    const isSystem = (spliced.messages[index] as Buffer).subarray(0, 16).includes('"system"');
    return { position: `messages.${index}`, isSystem };
  };
  const preamble = plan.cut === null ? null : where(plan.cut.preamble);
  if (plan.cut !== null && preamble !== null) {
    const { preamble: text, nodeIds: nodes } = plan.cut;
    additions.push({
      channel: 'preamble',
      position: preamble.position,
      text,
      nodes,
      reason: 'stands for the turns dropped',
    });
  }
  for (const { preamble: text, nodeIds: nodes } of plan.rounds) {
    const position = where(text)?.position;
    const reason = 'stands for the rounds dropped';
    if (position !== undefined) additions.push({ channel: 'preamble', position, text, nodes, reason });
  }
  for (const { text, nodeIds: nodes, found } of plan.injections) {
    const place = where(text);
    if (place === null) continue;
    const channel = place.isSystem ? 'system-message' : 'user-block';
    const addition = { channel, position: place.position, text, nodes, reason: 'recalled for that prompt' } as const;
    additions.push(found === undefined ? addition : { ...addition, found });
  }
  return additions;
}

function jsonOf(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
