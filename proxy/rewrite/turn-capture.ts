import { createHash } from 'node:crypto';
import type { CapturedMessage, CapturedTurn, Role } from '../../common/turn.ts';
import { findPrivateTexts } from '../../redact/index.ts';
import type { AssistantMessage } from '../ports.ts';
import type { ConversationView } from '../wire/conversation.ts';
import { scanObject } from '../wire/json-scanner.ts';
import { extendLineage, hashMessage } from '../wire/message-hashes.ts';
import { readMessageText } from '../wire/message-text.ts';
import { splitTurns, type TurnSpan } from '../wire/split-turns.ts';
import { type PartSpan, splitParts, splitRounds } from '../wire/tool-rounds.ts';

export interface CaptureContext {
  readonly sessionId: string;
  readonly atMs: number;
}

/** Turns of the transcript, oldest first, with the exact characters that Claude Code sent. */
export function captureTurns(
  view: ConversationView,
  spans: readonly TurnSpan[],
  context: CaptureContext,
): CapturedTurn[] {
  // Accumulated so that each message is scanned once.
  let scannedUntil = 0;
  let privateBefore: readonly string[] = [];
  return spans.map((span) => {
    privateBefore = [...privateBefore, ...findPrivateIn(view, scannedUntil, span.start)];
    scannedUntil = span.start;
    const messages = readMessages(view, span);
    const own = { ...commonFields(view, span, context), ...toEarlierPrivate(privateBefore) };
    return { ...own, turnId: span.endHash, messages, ...listParts(view, span) };
  });
}

/** Parts of the running turn. The first one includes the messages before the first round. */
export function captureParts(
  view: ConversationView,
  wanted: readonly PartSpan[],
  context: CaptureContext,
): CapturedTurn[] {
  const turn = splitTurns(view).at(-1);
  if (wanted.length === 0 || turn === undefined) return [];
  const all = splitParts(view, splitRounds(view, turn));
  const own = { ...commonFields(view, turn, context), ...toEarlierPrivate(findPrivateIn(view, 0, turn.start)) };
  return wanted.map((span) => {
    const before = all[span.index - 1];
    const part = { index: span.index, after: before?.endHash ?? null };
    const whole = { ...span, start: before?.end ?? turn.start };
    const messages = readMessages(view, whole);
    return { ...own, turnId: span.endHash, messages, part };
  });
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
  const captured = toCapturedMessage('assistant', Buffer.from(JSON.stringify(answer.content)));
  const messages = [...readMessages(view, span), captured];
  const own = { ...commonFields(view, span, context), ...toEarlierPrivate(findPrivateIn(view, 0, span.start)) };
  return { ...own, turnId, messages, ...listParts(view, span) };
}

function listParts(view: ConversationView, turn: TurnSpan): Pick<CapturedTurn, 'parts'> {
  let from = turn.start;
  const parts = splitParts(view, splitRounds(view, turn)).map((part) => {
    const messages = part.end - from;
    from = part.end;
    return { turnId: part.endHash, messages };
  });
  return parts.length === 0 ? {} : { parts };
}

function commonFields(view: ConversationView, span: TurnSpan, { sessionId, atMs }: CaptureContext) {
  const before = view.lineage[span.start - 1] ?? '';
  return { key: span.key, before, sessionId, projectDir: view.system.workingDirectory, model: view.model, atMs };
}

/** Carried with each turn: after a restart, resume or fork, memory has not seen the earlier turns. */
function toEarlierPrivate(texts: readonly string[]): Pick<CapturedTurn, 'earlierPrivate'> {
  return texts.length === 0 ? {} : { earlierPrivate: texts };
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

function readMessages(view: ConversationView, span: TurnSpan): CapturedMessage[] {
  const messages: CapturedMessage[] = [];
  for (let index = span.start; index < span.end; index += 1) {
    const slice = view.scan.messages[index];
    const content = slice === undefined ? undefined : scanObject(view.body, slice.start)?.values.get('content');
    if (content === undefined) continue;
    messages.push(toCapturedMessage(view.infos[index]?.role as Role, view.body.subarray(content.start, content.end)));
  }
  return messages;
}

function toCapturedMessage(role: Role, content: Buffer): CapturedMessage {
  return { role, content: content.toString('utf8'), sha256: createHash('sha256').update(content).digest('hex') };
}
