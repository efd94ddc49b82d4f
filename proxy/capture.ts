import { createHash } from 'node:crypto';
import { privateTexts } from '../common/redact.ts';
import type { CapturedMessage, CapturedTurn, Role } from '../common/turn.ts';
import type { AssistantMessage } from './ports.ts';
import { extendLineage, messageHash } from './wire/lineage.ts';
import { messageText } from './wire/prompt.ts';
import { type PartSpan, splitParts, splitRounds } from './wire/rounds.ts';
import { scanObject } from './wire/scan.ts';
import { splitTurns, type TurnSpan } from './wire/turns.ts';
import type { ConversationView } from './wire/view.ts';

export interface CaptureContext {
  readonly sessionId: string;
  readonly atMs: number;
}

/** A turn of the transcript, in the very characters that Claude Code sent. */
export function capturedTurn(view: ConversationView, span: TurnSpan, context: CaptureContext): CapturedTurn {
  const messages = receivedMessages(view, span);
  return { ...common(view, span, context), end: span.endHash, messages, ...partsOf(view, span) };
}

/** Rounds of a running turn, as parts of it: each message of the turn up to the last of them is in one. */
export function capturedParts(
  view: ConversationView,
  wanted: readonly PartSpan[],
  context: CaptureContext,
): CapturedTurn[] {
  const turn = splitTurns(view).at(-1);
  if (wanted.length === 0 || turn === undefined) return [];
  const all = splitParts(view, splitRounds(view, turn));
  return wanted.map((span) => {
    const before = all[span.index - 1];
    const part = { index: span.index, after: before?.endHash ?? null };
    const whole = { ...span, start: before?.end ?? turn.start };
    return { ...common(view, turn, context), end: span.endHash, messages: receivedMessages(view, whole), part };
  });
}

/** The turn that a response has just ended, before Claude Code has sent the answer back. */
export function answeredTurn(
  view: ConversationView,
  span: TurnSpan,
  answer: AssistantMessage,
  context: CaptureContext,
): CapturedTurn {
  const message = { role: 'assistant', content: answer.content };
  const end = extendLineage(view.lineage.at(-1) as string, messageHash(message));
  const captured = asCaptured('assistant', Buffer.from(JSON.stringify(answer.content)));
  const messages = [...receivedMessages(view, span), captured];
  return { ...common(view, span, context), end, messages, ...partsOf(view, span) };
}

function partsOf(view: ConversationView, turn: TurnSpan): Pick<CapturedTurn, 'parts'> {
  let from = turn.start;
  const parts = splitParts(view, splitRounds(view, turn)).map((part) => {
    const messages = part.end - from;
    from = part.end;
    return { end: part.endHash, messages };
  });
  return parts.length === 0 ? {} : { parts };
}

function common(view: ConversationView, span: TurnSpan, { sessionId, atMs }: CaptureContext) {
  const before = view.lineage[span.start - 1] ?? '';
  const whose = { sessionId, projectDir: view.system.workingDirectory, model: view.model, atMs };
  return { key: span.key, before, ...whose, ...privateBefore(view, span.start) };
}

/** A restarted engine, a resumed or a forked session never heard the turns before. */
function privateBefore(view: ConversationView, end: number): Pick<CapturedTurn, 'earlierPrivate'> {
  const bytes = view.body.subarray(0, view.scan.messages[end]?.start ?? 0);
  if (!/<[\s/]{0,17}private/i.test(bytes.toString('latin1'))) return {};
  const said = view.infos.slice(0, end).flatMap(({ role }, at) => (role === 'user' ? messageText(view, at) : []));
  const found = said.flatMap(privateTexts);
  return found.length === 0 ? {} : { earlierPrivate: found };
}

function receivedMessages(view: ConversationView, span: TurnSpan): CapturedMessage[] {
  const messages: CapturedMessage[] = [];
  for (let index = span.start; index < span.end; index += 1) {
    const slice = view.scan.messages[index];
    const content = slice === undefined ? undefined : scanObject(view.body, slice.start)?.values.get('content');
    if (content === undefined) continue;
    messages.push(asCaptured(view.infos[index]?.role as Role, view.body.subarray(content.start, content.end)));
  }
  return messages;
}

function asCaptured(role: Role, content: Buffer): CapturedMessage {
  return { role, content: content.toString('utf8'), sha256: createHash('sha256').update(content).digest('hex') };
}
