import { createHash } from 'node:crypto';
import type { Receipt, ReceiptAddition } from '../ledger/receipts.ts';
import { type ConversationView, estimateTokens } from '../wire/conversation.ts';
import { findHeadEnd } from '../wire/split-turns.ts';
import type { Spliced } from './apply-plan.ts';
import { type EpochPlan, locatePlan } from './plan.ts';
import { minimizeEdits } from './receipt-edits.ts';

export interface ReceiptInput {
  readonly requestId: string;
  readonly sessionId: string;
  readonly atMs: number;
  readonly kind: string;
  /** Why the request got this plan: `replay`, `recall`, or the reason of a new epoch. */
  readonly decision: string;
  readonly view: ConversationView;
  /** Null when the received bytes went upstream. */
  readonly rewrite: { readonly plan: EpochPlan; readonly spliced: Spliced } | null;
}

/** The receipt of a request without a response yet. */
export function createReceipt({ view, rewrite, ...input }: ReceiptInput): Receipt {
  const sentBody = rewrite?.spliced.body ?? view.body;
  const received_tokens = estimateTokens(view.body.length);
  const sent_tokens = estimateTokens(sentBody.length);
  const received = digestBody(view.body);
  return {
    request_id: input.requestId,
    session_id: input.sessionId,
    at: new Date(input.atMs).toISOString(),
    class: input.kind,
    epoch: rewrite?.plan.epoch ?? null,
    received,
    sent: sentBody === view.body ? received : digestBody(sentBody),
    dropped: rewrite === null ? [] : listDropped(view, rewrite.plan),
    added: rewrite === null ? [] : listAdded(view, rewrite.plan, rewrite.spliced),
    thinking_stripped: rewrite?.spliced.thinkingStripped ?? 0,
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
    edits: minimizeEdits(view, rewrite?.spliced.edits ?? []),
  };
}

function digestBody(body: Buffer): Receipt['received'] {
  return { bytes: body.length, sha256: createHash('sha256').update(body).digest('hex') };
}

function listDropped(view: ConversationView, plan: EpochPlan): Receipt['dropped'] {
  const location = locatePlan(plan, view.lineage);
  const ranges = (location?.rounds ?? []).map(({ cut, start, end }) => ({ start, end, nodes: cut.nodeIds }));
  if (plan.cut !== null) {
    ranges.unshift({ start: findHeadEnd(view), end: location?.cutEnd ?? 0, nodes: plan.cut.nodeIds });
  }
  return ranges.flatMap(({ start, end, nodes }) => {
    const dropped = view.infos.slice(start, end);
    const tokens = dropped.reduce((total, info) => total + info.tokens, 0);
    return dropped.length === 0 ? [] : [{ from: start, to: end - 1, messages: dropped.length, tokens, nodes }];
  });
}

function listAdded(view: ConversationView, plan: EpochPlan, spliced: Spliced): ReceiptAddition[] {
  const additions: ReceiptAddition[] = [];
  if (plan.systemBlock !== null) {
    const { systemBlock: text, systemNodeIds: nodes, systemFound: found } = plan;
    const reason = 'brief and standing memory of this epoch';
    additions.push({
      channel: 'system',
      position: `system.${view.scan.system?.length ?? 1}`,
      text,
      nodes,
      reason: found === undefined ? reason : `${reason}, and what a prompt recalled`,
      ...(found === undefined ? {} : { found }),
    });
  }
  const addPreamble = ({ preamble: text, nodeIds: nodes }: Preamble, reason: string): void => {
    const position = findMessage(spliced, text)?.position;
    if (position !== undefined) additions.push({ channel: 'preamble', position, text, nodes, reason });
  };
  if (plan.cut !== null) addPreamble(plan.cut, 'stands for the turns dropped');
  for (const cut of plan.rounds) addPreamble(cut, 'stands for the rounds dropped');
  for (const { text, nodeIds: nodes, found } of plan.injections) {
    const message = findMessage(spliced, text);
    if (message === null) continue;
    additions.push({
      channel: message.isSystem ? 'system-message' : 'user-block',
      position: message.position,
      text,
      nodes,
      reason: 'recalled for that prompt',
      ...(found === undefined ? {} : { found }),
    });
  }
  return additions;
}

interface Preamble {
  readonly preamble: string;
  readonly nodeIds: readonly string[];
}

/** The new or changed message that contains `text`. */
function findMessage({ messages }: Spliced, text: string): { position: string; isSystem: boolean } | null {
  const encoded = JSON.stringify(text).slice(1, -1);
  const index = messages.findIndex((message) => Buffer.isBuffer(message) && message.includes(encoded));
  if (index < 0) return null;
  const isSystem = (messages[index] as Buffer).subarray(0, 16).includes('"system"');
  return { position: `messages.${index}`, isSystem };
}
