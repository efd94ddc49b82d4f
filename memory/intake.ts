import { createHash } from 'node:crypto';
import type { Redactor } from '../common/redact.ts';
import type { CapturedMessage, CapturedTurn } from '../common/turn.ts';
import type { TurnText } from './ports.ts';
import { elide } from './prompts/transcript.ts';

/** Tool traffic kept beside a buffered turn: the compacter reads whole turns from the journal. */
const BUFFERED_TOOL_CHARS = 4_000;

/** The turn as it may be written: secrets marked, digests of what is written. */
export function redactTurn(turn: CapturedTurn, redactor: Redactor): CapturedTurn & { readonly redacted: boolean } {
  let redacted = false;
  const messages = turn.messages.map((message): CapturedMessage => {
    const found = redactor.json(message.content);
    if (!found.redacted) return message;
    redacted = true;
    // The digest of what was there before would let a short secret be guessed.
    return { role: message.role, content: found.text, sha256: createHash('sha256').update(found.text).digest('hex') };
  });
  return { ...turn, messages, redacted };
}

/** What sensor and local compacter need of a turn while it waits. */
export function slimTurn(turn: TurnText): TurnText {
  const parts = turn.parts.map((part) => {
    return part.kind === 'assistant' ? part : { ...part, text: elide(part.text, BUFFERED_TOOL_CHARS) };
  });
  return { ...turn, parts };
}
