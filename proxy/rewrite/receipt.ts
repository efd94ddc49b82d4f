import { sha256 } from '../../common/text.ts';
import type { Receipt, ReceiptAddition, ReceiptEdit } from '../ledger/receipt.ts';
import type { GivenSlice } from '../ports.ts';
import { type ConversationView, estimateTokens } from '../wire/conversation.ts';
import { type Edit, type Slice, scanArray, scanObject } from '../wire/json.ts';
import { findHeadEnd, splitTurns, sumDroppable } from '../wire/turns.ts';
import { type Cut, type EpochPlan, locatePlan, type RewriteResult, type RoundCut, type Spliced } from './plan.ts';

/**
 * The receipt of a request without a response yet.
 * @param rewrite  null when the received bytes went upstream
 * @param slice    what a hook gave the subagent; null where none did
 */
export function createReceipt(
  { context, decision }: RewriteResult,
  rewrite: { readonly plan: EpochPlan; readonly spliced: Spliced } | null,
  slice: GivenSlice | null,
): Receipt {
  const { request, view } = context;
  const sentBody = rewrite?.spliced.body ?? view.body;
  const received_tokens = estimateTokens(view.body.length);
  const sent_tokens = estimateTokens(sentBody.length);
  const received = digestBody(view.body);
  const turn = splitTurns(view).at(-1)?.key ?? '';
  return {
    request_id: request.requestId,
    session_id: context.sessionId,
    at: new Date(request.receivedAtMs).toISOString(),
    class: context.kind,
    turn,
    epoch: rewrite?.plan.epoch ?? null,
    received,
    sent: sentBody === view.body ? received : digestBody(sentBody),
    dropped: rewrite === null ? [] : listDropped(view, rewrite.plan),
    added: rewrite === null ? [] : listAdded(view, rewrite.plan, rewrite.spliced, turn),
    ...(slice === null ? {} : { facts: slice }),
    thinking_stripped: rewrite?.spliced.thinkingStripped ?? 0,
    economics: {
      received_tokens,
      sent_tokens,
      saved_tokens: received_tokens - sent_tokens,
      decision,
      billed: null,
      untouched: null,
      saved_equivalents: 0,
      saved_usd: 0,
      conversation_saved_usd: 0,
      trimming_off: null,
    },
    status: 0,
    refusal: '',
    ...(request.timer === undefined ? {} : { phases: request.timer.phases }),
    edits: minimizeEdits(view, rewrite?.spliced.edits ?? []),
  };
}

const digestBody = (body: Buffer): Receipt['received'] => ({ bytes: body.length, sha256: sha256(body) });

function listDropped(view: ConversationView, plan: EpochPlan): Receipt['dropped'] {
  const location = locatePlan(plan, view.lineage);
  const ranges = (location?.rounds ?? []).map(({ cut, start, end }) => ({ start, end, nodes: cut.nodeIds }));
  if (plan.cut !== null)
    ranges.unshift({ start: findHeadEnd(view), end: location?.cutEnd ?? 0, nodes: plan.cut.nodeIds });
  return ranges.flatMap(({ start, end, nodes }) => {
    const dropped = view.infos.slice(start, end);
    const tokens = sumDroppable(dropped);
    return dropped.length === 0 ? [] : [{ from: start, to: end - 1, messages: dropped.length, tokens, nodes }];
  });
}

function listAdded(view: ConversationView, plan: EpochPlan, spliced: Spliced, turn: string): ReceiptAddition[] {
  const additions: ReceiptAddition[] = [];
  if (plan.systemBlock !== null) {
    const { systemBlock: text, systemNodeIds: nodes, systemFound: found } = plan;
    const reason = 'brief and pinned memories';
    additions.push({
      channel: 'system',
      position: `system.${view.scan.system?.length ?? 1}`,
      text,
      nodes,
      reason: found === undefined ? reason : `${reason}, and what a prompt recalled`,
      ...(found === undefined ? {} : { found, current: true }),
    });
  }
  const addPreamble = ({ preamble: text, nodeIds: nodes }: Cut | RoundCut, reason: string): void => {
    const position = findMessage(spliced, text)?.position;
    if (position !== undefined) additions.push({ channel: 'preamble', position, text, nodes, reason });
  };
  if (plan.cut !== null) addPreamble(plan.cut, 'in place of the turns left out');
  for (const cut of plan.rounds) addPreamble(cut, 'in place of the tool rounds left out');
  for (const { anchor, text, nodeIds: nodes, found } of plan.injections) {
    const message = findMessage(spliced, text);
    if (message === null) continue;
    additions.push({
      channel: message.isSystem ? 'system-message' : 'user-block',
      position: message.position,
      text,
      nodes,
      reason: getReason(plan, anchor === turn),
      ...(found === undefined ? {} : { found }),
      ...(anchor === turn ? { current: true } : {}),
    });
  }
  return additions;
}

function getReason({ slice }: EpochPlan, isCurrent: boolean): string {
  if (slice !== undefined) return `facts that ${slice.agent} is subscribed to (${slice.because})`;
  return isCurrent ? 'recalled for this prompt' : 'recalled for an earlier prompt';
}

/** The new or changed message that contains `text`. */
function findMessage({ messages }: Spliced, text: string): { position: string; isSystem: boolean } | null {
  const encoded = JSON.stringify(text).slice(1, -1);
  const index = messages.findIndex((message) => Buffer.isBuffer(message) && message.includes(encoded));
  if (index < 0) return null;
  return { position: `messages.${index}`, isSystem: (messages[index] as Buffer).subarray(0, 16).includes('"system"') };
}

/**
 * Equivalent edits without received bytes: receipts are stored, and what Claude Code sent must not be stored with them.
 * The edit of a whole message becomes insertions and deletions around the blocks that stay.
 */
function minimizeEdits(view: Pick<ConversationView, 'body' | 'scan'>, edits: readonly Edit[]): ReceiptEdit[] {
  const slices = [...view.scan.messages, view.scan.fields.get('system')].filter((at) => at !== undefined);
  const byStart = new Map(slices.map((at) => [at.start, at]));
  return edits.flatMap((edit) => {
    const slice = byStart.get(edit.start);
    const isWhole = slice !== undefined && slice.end === edit.end && edit.end > edit.start;
    return isWhole
      ? editAroundPieces(view.body, edit, splitPieces(view.body, slice))
      : [toReceiptEdit(edit, edit.bytes)];
  });
}

/** The bytes before the first block, each block, and the bytes after the last; a value without blocks is one piece. */
function splitPieces(body: Buffer, at: Slice): Slice[] {
  const content = scanObject(body, at.start)?.values.get('content') ?? at;
  const blocks = scanArray(body, content.start) ?? [content];
  const [first, last] = [blocks[0], blocks.at(-1)];
  if (first === undefined || last === undefined) return [at];
  const opening = { start: at.start, end: content.start };
  return [opening, ...blocks, { start: last.end, end: at.end }].filter(({ start, end }) => end > start);
}

/** Finds the pieces in the replacement, in order, and keeps only what differs between them. */
function editAroundPieces(body: Buffer, edit: Edit, pieces: readonly Slice[]): ReceiptEdit[] {
  const edits: ReceiptEdit[] = [];
  let [start, from] = [edit.start, 0];
  for (const piece of pieces) {
    const bytes = body.subarray(piece.start, piece.end);
    const at = edit.bytes.indexOf(bytes, from);
    if (at < 0) continue;
    if (piece.start > start || at > from)
      edits.push(toReceiptEdit({ start, end: piece.start }, edit.bytes.subarray(from, at)));
    [start, from] = [piece.end, at + bytes.length];
  }
  const rest = edit.bytes.subarray(from);
  if (edit.end > start || rest.length > 0) edits.push(toReceiptEdit({ start, end: edit.end }, rest));
  return edits;
}

function toReceiptEdit({ start, end }: Slice, bytes: Buffer): ReceiptEdit {
  return { start, end, text: bytes.toString('utf8') };
}
