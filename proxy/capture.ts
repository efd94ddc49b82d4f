import { createHash } from 'node:crypto';
import type { CapturedMessage, CapturedTurn, Role } from '../common/turn.ts';
import type { AssistantMessage } from './ports.ts';
import { extendLineage, messageHash } from './wire/lineage.ts';
import { scanObject } from './wire/scan.ts';
import type { TurnSpan } from './wire/turns.ts';
import type { ConversationView } from './wire/view.ts';

export interface CaptureContext {
  readonly sessionId: string;
  readonly atMs: number;
}

/** A turn of the transcript, in the very characters that Claude Code sent. */
export function capturedTurn(view: ConversationView, span: TurnSpan, context: CaptureContext): CapturedTurn {
  return { ...common(view, span, context), end: span.endHash, messages: receivedMessages(view, span) };
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
  return { ...common(view, span, context), end, messages: [...receivedMessages(view, span), captured] };
}

function common(view: ConversationView, span: TurnSpan, { sessionId, atMs }: CaptureContext) {
  return { key: span.key, sessionId, projectDir: view.system.workingDirectory, model: view.model, atMs };
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
