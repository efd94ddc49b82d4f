import type { Clock } from '../../common/async.ts';
import type { LruMap } from '../../common/map.ts';
import { sha256 } from '../../common/text.ts';
import {
  type CapturedMessage,
  type CapturedTurn,
  findTypedBesideResults,
  hasInterruption,
  type Role,
  SUMMARY_PROMPT,
} from '../../common/turn.ts';
import { findPrivateTexts } from '../../redact/index.ts';
import { sumBill } from '../ledger/cost.ts';
import type { CostLedger, Receipts, RequestCost } from '../ledger/index.ts';
import type {
  AssistantMessage,
  MemorySource,
  MessagesRequest,
  ObservedResponse,
  PastPrompt,
  ProxyLog,
  RewriteOutcome,
  SubagentSource,
} from '../ports.ts';
import {
  AGENT_ID,
  type ConversationCache,
  type ConversationView,
  findOpening,
  type RequestContext,
  readBlocks,
  readMessageText,
} from '../wire/conversation.ts';
import { findResultsEnd, type Slice, scanObject } from '../wire/json.ts';
import { extendLineage, hashMessage, readSignature } from '../wire/message.ts';
import { isMergedPrompt, type PartSpan, splitParts, splitRounds, splitTurns, type TurnSpan } from '../wire/turns.ts';
import { classifyApiError, readApiMessage } from '../wire/validate.ts';
import { describeUse, type RewriteResult, refusesReceived } from './plan.ts';
import type { PlanCache } from './plan-store.ts';
import { createReceipt } from './receipt.ts';

/** The newest request of a session whose turn is not finished. */
export interface UnfinishedTurn {
  readonly context: RequestContext;
  readonly answer: AssistantMessage | null;
  readonly isAborted: boolean;
  readonly sinceMs: number;
}

export interface ResponseRecorderDeps {
  readonly memory: Pick<MemorySource, 'captureTurns'>;
  readonly ledger: CostLedger;
  readonly receipts: Receipts;
  readonly cache: ConversationCache;
  readonly clock: Clock;
  /** Keys of turns that were captured with their answer. */
  readonly answered: LruMap<string, true>;
  readonly unfinished: LruMap<string, UnfinishedTurn>;
  readonly subagents?: SubagentSource;
  readonly log: ProxyLog;
  readonly saveLater: PlanCache['saveLater'];
  readonly noteAnswer: PlanCache['index']['noteAnswer'];
}

/** Records what follows a response: the cost, the receipt, a refused plan, the captured turn. */
export type ResponseRecorder = ReturnType<typeof createResponseRecorder>;

export function createResponseRecorder(deps: ResponseRecorderDeps) {
  const { memory, ledger, receipts, clock, saveLater } = deps;

  function recordResponse(result: RewriteResult, response: ObservedResponse): void {
    const { context, cut } = result;
    const rewrite = findRewrite(result);
    const { request, view, sessionId, kind } = context;
    if (rewrite !== null) breakRefusedPlan(deps, context, rewrite, response);
    const { plan, formerUse } = result;
    // Upstream refused the request before it read its prompt cache.
    if (plan && formerUse && kind === 'main' && response.status >= 400)
      saveLater(sessionId, { kind: 'served', planId: plan.id, served: view.lineage.at(-1) as string, use: formerUse });
    const message = request.path === 'messages' ? response.message : null;
    let account: RequestCost | null = null;
    if (message !== null && sumBill(message.usage) > 0) {
      account = ledger.recordRequest({
        requestId: request.requestId,
        atMs: request.receivedAtMs,
        conversation: sessionId,
        model: view.model,
        view,
        sent: rewrite && { systemBlock: rewrite.plan.systemBlock, messages: rewrite.spliced.messages },
        counts: kind !== 'other',
        cut,
        usage: message.usage,
      });
    }
    if (message !== null && plan !== null)
      deps.noteAnswer(view.lineage.at(-1) as string, readSignature(message.content));
    receipts.settle(request.requestId, { status: response.status, refusal: response.errorText, account });
    if (message !== null) captureTurn(result, response, message);
  }

  function captureTurn({ context, plan }: RewriteResult, response: ObservedResponse, message: AssistantMessage): void {
    const { view, kind, sessionId, isSubagent } = context;
    const turn = splitTurns(view).at(-1);
    updateUnfinished(deps, context, response, message);
    if (turn === undefined || !endsTurn(response.end, message)) return;
    const own = { sessionId, atMs: response.atMs ?? clock.now() };
    if (isSubagent) {
      memory.captureTurns([{ ...captureAnsweredTurn(view, { ...turn, start: 0 }, message, own), subagent: true }]);
    }
    if (kind !== 'main') return;
    deps.answered.set(turn.key, true);
    const captured = captureAnsweredTurn(view, turn, message, own);
    memory.captureTurns([captured]);
    // A fork after the first answer finds no request with an answer in its history.
    if (plan === null || view.infos.some(({ role }) => role === 'assistant')) return;
    const { use } = describeUse(view, clock.now());
    saveLater(sessionId, { kind: 'served', planId: plan.id, served: captured.turnId, use });
  }

  return {
    /** @param isSent  false when a replay was sent in place of this result, which then gets no receipt */
    toOutcome(result: RewriteResult, isSent: boolean): RewriteOutcome {
      const { request } = result.context;
      const rewrite = findRewrite(result);
      if (isSent && request.path === 'messages') {
        const slice = deps.subagents?.givenTo(request.headers[AGENT_ID] ?? '') ?? null;
        receipts.add(request.requestId, () => createReceipt(result, rewrite, slice));
      }
      const onResponse = recordResponse.bind(null, result);
      return { body: rewrite?.spliced.body ?? request.body, rewritten: rewrite !== null, onResponse };
    },
    /** For a body that could not be parsed. */
    passThrough(request: MessagesRequest): RewriteOutcome {
      const { requestId, receivedAtMs: atMs, body } = request;
      const onResponse = ({ message }: ObservedResponse): void => {
        if (request.path !== 'messages' || message === null || sumBill(message.usage) === 0) return;
        const { model, usage } = message;
        const unknown = { conversation: '', view: null, sent: null, counts: false, cut: false };
        ledger.recordRequest({ requestId, atMs, model, usage, ...unknown });
      };
      return { body, rewritten: false, onResponse };
    },
  };
}

/** A refusal counts against the plan unless the received request would get the same. */
function breakRefusedPlan(
  { cache, log, ledger, saveLater }: ResponseRecorderDeps,
  context: RequestContext,
  { plan, spliced }: NonNullable<ReturnType<typeof findRewrite>>,
  response: ObservedResponse,
): void {
  if (response.status !== 400) return;
  const broken = classifyApiError(response.errorText);
  if (broken === null || refusesReceived(readApiMessage(response.errorText), context, spliced, cache)) return;
  const { sessionId } = context;
  log.error('upstream refused a rewritten request; the plan is marked broken', { sessionId, broken });
  // Claude Code repeats a request refused for its thinking; any other refusal ends the user's turn.
  ledger.recordRefusal(sessionId, broken === 'structure');
  saveLater(sessionId, { kind: 'broken', planId: plan.id, broken });
}

/** Keeps what has arrived of the answer, until the turn ends or a newer request replaces this one. */
function updateUnfinished(
  { unfinished, clock }: Pick<ResponseRecorderDeps, 'unfinished' | 'clock'>,
  context: RequestContext,
  { end }: ObservedResponse,
  answer: AssistantMessage,
): void {
  const { sessionId } = context;
  if (unfinished.peek(sessionId)?.context !== context) return;
  if (endsTurn(end, answer)) unfinished.delete(sessionId);
  else unfinished.set(sessionId, { context, answer, isAborted: end === 'aborted_by_client', sinceMs: clock.now() });
}

function findRewrite({ plan, spliced }: RewriteResult) {
  return plan !== null && spliced !== null && spliced.edits.length > 0 ? { plan, spliced } : null;
}

function endsTurn(end: ObservedResponse['end'], { stopReason }: AssistantMessage): boolean {
  return end === 'complete' && stopReason !== null && stopReason !== 'tool_use' && stopReason !== 'pause_turn';
}

type CaptureContext = Pick<CapturedTurn, 'sessionId' | 'atMs'>;

/** Turns of the transcript, oldest first, with the exact characters that Claude Code sent. */
export function captureTurns(view: ConversationView, spans: readonly TurnSpan[], context: CaptureContext) {
  // Accumulated so that each message is scanned once.
  let scannedUntil = 0;
  let privateBefore: readonly string[] = [];
  return spans.map((span) => {
    privateBefore = [...privateBefore, ...findPrivateIn(view, scannedUntil, span.start)];
    scannedUntil = span.start;
    const messages = readMessages(view, span);
    const own = commonFields(view, span, context, privateBefore);
    const ids = { ...findFormerId(view, span), unfinishedIds: listUnfinishedIds(view, span) };
    // Claude Code says in front of the next prompt that the user stopped the answer.
    const next = view.scan.messages[span.end];
    const isStopped = next && hasInterruption(readBlocks(view, next).flatMap(({ text }) => text ?? []));
    const stopped = isStopped ? { unfinished: true as const } : {};
    return { ...own, ...ids, ...stopped, turnId: span.endHash, messages, ...listParts(view, span) };
  });
}

/** Times by end hash: of the turn's prompt in the client's transcript, else of the turn before. */
export function findTimes(view: ConversationView, spans: readonly TurnSpan[], prompts: readonly PastPrompt[]) {
  const times = new Map<string, number>();
  let [next, atMs] = [0, prompts[0]?.atMs];
  for (const span of spans) {
    const typed = readTurnMark(view, span);
    const found = prompts.findIndex(({ text }, at) => at >= next && text === typed);
    if (found >= 0) [next, atMs] = [found + 1, prompts[found]?.atMs];
    if (atMs !== undefined) times.set(span.endHash, atMs);
  }
  return times;
}

/** The first words that the user typed in a turn; where there are none, what is attached, or a hash. */
export function readTurnMark(view: ConversationView, { start, end }: TurnSpan): string {
  const isTyped = (at: number): boolean => view.infos[at]?.role === 'user' && readMessageText(view, at) !== '';
  const typed = view.infos.findIndex((_, at) => at >= start && at < end && isTyped(at));
  if (typed >= 0) return readMessageText(view, typed);
  const slice = view.scan.messages[start];
  const attached = slice === undefined ? [] : readBlocks(view, slice).filter(({ type }) => type !== 'text');
  if (attached.length === 0) return view.infos[start]?.hash ?? '';
  return JSON.stringify(attached, (name, value) => (name === 'cache_control' ? undefined : value));
}

/** Former versions did not end a turn at a prompt that was sent with tool results. */
function findFormerId(view: ConversationView, { end }: TurnSpan): Pick<CapturedTurn, 'formerId'> {
  if (!isMergedPrompt(view.infos, end)) return {};
  const later = splitTurns(view).filter(({ start }) => start >= end);
  const next = later.findIndex(({ start }, at) => at > 0 && !isMergedPrompt(view.infos, start));
  const formerId = later.at(next < 0 ? -1 : next - 1)?.endHash;
  return formerId === undefined ? {} : { formerId };
}

/** Parts of the running turn. The first one includes the messages before the first round. */
export function captureParts(view: ConversationView, wanted: readonly PartSpan[], context: CaptureContext) {
  const turn = splitTurns(view).at(-1);
  if (wanted.length === 0 || turn === undefined) return [];
  const all = splitParts(view, splitRounds(view, turn));
  const own = commonFields(view, turn, context);
  return wanted.map((span) => {
    const before = all[span.index - 1];
    const part = { index: span.index, after: before?.endHash ?? null };
    const messages = readMessages(view, { ...span, start: before?.end ?? turn.start });
    return { ...own, turnId: span.endHash, messages, part };
  });
}

/** Its id differs from that of a part of the turn that ends at the same message. */
export function captureUnfinishedTurn({ context, answer, sinceMs }: UnfinishedTurn): CapturedTurn[] {
  const { view, sessionId } = context;
  const turn = splitTurns(view).at(-1);
  if (turn === undefined) return [];
  const messages = [...readMessages(view, turn), ...(answer === null ? [] : [toAnswer(answer)])];
  const own = commonFields(view, turn, { sessionId, atMs: sinceMs });
  return [{ ...own, turnId: unfinishedId(turn.endHash), unfinished: true, messages, ...listParts(view, turn) }];
}

const unfinishedId = (endHash: string): string => extendLineage(endHash, 'unfinished');

/** Ids that the unfinished forms of this turn would have: one for each end that a request with it may have had. */
export function listUnfinishedIds(view: ConversationView, { start, end }: Pick<TurnSpan, 'start' | 'end'>): string[] {
  const { infos, lineage } = view;
  const isMerged = isMergedPrompt(infos, start);
  const own = lineage.slice(start, end).flatMap((hash, at) => {
    if (infos[start + at]?.role === 'assistant') return [];
    return [...listBeginnings(view, start + at, isMerged && at === 0), hash];
  });
  return [...own, ...(isMergedPrompt(infos, end) ? listBeginnings(view, end, false) : [])].map(unfinishedId);
}

/**
 * Lineage hashes of this message without its last texts: Claude Code puts what is typed next into a message that got no
 * answer. Of one with a merged prompt, those with the prompt (`prompted`) belong to its turn, the others to that before.
 */
function listBeginnings(view: ConversationView, index: number, prompted: boolean): string[] {
  const [info, at] = [view.infos[index], view.scan.messages[index]];
  if (info?.role !== 'user' || at === undefined || !info.shape.blocks.slice(1).some(({ type }) => type === 'text'))
    return [];
  const blocks = readBlocks(view, at);
  const isMerged = isMergedPrompt(view.infos, index);
  return blocks.flatMap(({ type }, end) => {
    const content = blocks.slice(0, end).map((block, at) => (at === end - 1 ? withoutSeam(block) : block));
    const isPrompted = isMerged && findTypedBesideResults(content.flatMap(({ text = [] }) => text)) !== null;
    if (end === 0 || type !== 'text' || isPrompted !== prompted) return [];
    return extendLineage(view.lineage[index - 1] ?? '', hashMessage({ role: 'user', content }));
  });
}

/** Claude Code ends a text with a line break where it puts another one behind it. */
function withoutSeam<T extends { readonly text?: string }>(block: T): T {
  return block.text?.endsWith('\n') === true ? { ...block, text: block.text.slice(0, -1) } : block;
}

/** The turn that a response just ended, before Claude Code sends the answer back. */
export function captureAnsweredTurn(
  view: ConversationView,
  span: TurnSpan,
  answer: AssistantMessage,
  context: CaptureContext,
): CapturedTurn {
  const message = { role: 'assistant', content: answer.content };
  const turnId = extendLineage(view.lineage.at(-1) as string, hashMessage(message));
  const own = { ...commonFields(view, span, context), unfinishedIds: listUnfinishedIds(view, span) };
  return { ...own, turnId, messages: [...readMessages(view, span), toAnswer(answer)], ...listParts(view, span) };
}

/**
 * The unanswered turns before a request for a summary, which no later request has. In a tool loop the text that asks may
 * be in the message that answers the newest calls: the turn is captured without it, and what was typed there is a turn.
 */
export function captureSummarizedTurns(view: ConversationView, context: CaptureContext): CapturedTurn[] {
  const [last, at] = [view.infos.at(-1), view.scan.messages.at(-1)];
  const turns = splitTurns(view);
  if (last?.role !== 'user' || at === undefined) return [];
  const blocks = readBlocks(view, at);
  const place = findOpening(blocks, [SUMMARY_PROMPT]);
  if (place < 0) return [];
  if (last.isPrompt) {
    const before = turns.at(-2);
    const isAnswered = before === undefined || view.infos[before.end - 1]?.role === 'assistant';
    return isAnswered ? [] : captureTurns(view, [before], context);
  }
  const turn = turns.at(-1);
  if (turn === undefined) return [];
  const isMerged = turn.start === view.infos.length - 1;
  const before = turns.at(-2);
  const ended = isMerged && before !== undefined ? captureTurns(view, [before], context) : [];
  const content = blocks.slice(0, place);
  const turnId = extendLineage(view.lineage.at(-2) as string, hashMessage({ role: 'user', content }));
  const left = toCapturedMessage('user', Buffer.from(JSON.stringify(content)));
  const typed = JSON.stringify(content.filter(({ type }) => type !== 'tool_result'));
  const messages = isMerged
    ? [{ ...left, content: typed }]
    : [...readMessages(view, { ...turn, end: turn.end - 1 }), left];
  const unfinishedIds = [...listUnfinishedIds(view, { ...turn, end: turn.end - 1 }), unfinishedId(turnId)];
  return [
    ...ended,
    { ...commonFields(view, turn, context), unfinishedIds, turnId, messages, ...listParts(view, turn) },
  ];
}

function listParts(view: ConversationView, turn: TurnSpan): Pick<CapturedTurn, 'parts'> {
  const ends = splitParts(view, splitRounds(view, turn));
  const parts = ends.map(({ end, endHash }, at) => ({
    turnId: endHash,
    messages: end - (ends[at - 1]?.end ?? turn.start),
  }));
  return parts.length === 0 ? {} : { parts };
}

/** @param earlier  texts that the user marked as private before it */
function commonFields(
  view: ConversationView,
  span: TurnSpan,
  context: CaptureContext,
  earlier: readonly string[] = findPrivateIn(view, 0, span.start),
) {
  // Carried with each turn: after a restart, resume or fork, memory has not seen the earlier turns.
  const earlierPrivate = earlier.length === 0 ? {} : { earlierPrivate: earlier };
  const before = view.lineage[span.start - 1] ?? '';
  const merged = isMergedPrompt(view.infos, span.start) ? { merged: true as const } : {};
  const { workingDirectory: projectDir } = view.system;
  return { ...context, key: span.key, before, ...merged, projectDir, model: view.model, ...earlierPrivate };
}

/** Texts that the user marked as private in messages `[from, end)`. */
function findPrivateIn(view: ConversationView, from: number, end: number): string[] {
  const [first, last] = [view.scan.messages[from], view.scan.messages[end - 1]];
  if (end <= from || first === undefined || last === undefined) return [];
  if (!/<[\s/]{0,17}private/i.test(view.body.toString('latin1', first.start, last.end))) return [];
  const texts = view.infos
    .slice(from, end)
    .flatMap(({ role }, at) => (role === 'user' ? readMessageText(view, from + at) : []));
  return texts.flatMap(findPrivateTexts);
}

/** Of a message with tool results and a prompt, the results are read with the turn that ends there. */
function readMessages(view: ConversationView, span: Pick<TurnSpan, 'start' | 'end'>): CapturedMessage[] {
  const messages: CapturedMessage[] = [];
  for (let index = span.start; index < span.end; index += 1) {
    const content = findContent(view, index);
    if (content === undefined) continue;
    const whole = toCapturedMessage(view.infos[index]?.role as Role, view.body.subarray(content.start, content.end));
    if (index > span.start || !isMergedPrompt(view.infos, index)) messages.push(whole);
    else messages.push({ ...whole, content: splitContent(view.body, content).prompt });
  }
  const next = isMergedPrompt(view.infos, span.end) ? findContent(view, span.end) : undefined;
  if (next === undefined) return messages;
  return [...messages, toCapturedMessage('user', Buffer.from(splitContent(view.body, next).results))];
}

function findContent({ body, scan }: ConversationView, index: number): Slice | undefined {
  const slice = scan.messages[index];
  return slice === undefined ? undefined : scanObject(body, slice.start)?.values.get('content');
}

/** Both halves, joined by a comma, are the bytes received. */
function splitContent(body: Buffer, content: Slice): { readonly results: string; readonly prompt: string } {
  const end = findResultsEnd(body, content);
  const comma = body.indexOf(',', end);
  const results = `${body.toString('utf8', content.start, comma)}]`;
  return { results, prompt: `[${body.toString('utf8', comma + 1, content.end)}` };
}

function toAnswer({ content }: AssistantMessage): CapturedMessage {
  return toCapturedMessage('assistant', Buffer.from(JSON.stringify(content)));
}

function toCapturedMessage(role: Role, content: Buffer): CapturedMessage {
  return { role, content: content.toString('utf8'), sha256: sha256(content) };
}
