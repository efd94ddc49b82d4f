import { createHash } from 'node:crypto';
import type { CapturedMessage, CapturedTurn } from '../../common/turn.ts';
import type { Redactor } from '../../redact/index.ts';
import type { TurnText } from '../model/turn.ts';
import { elide } from '../models/prompts/transcript.ts';
import { createPrivateWords, type PrivateWords } from './private-spans.ts';

/** Tool traffic kept beside a buffered turn: the compacter reads whole turns from the journal. */
const BUFFERED_TOOL_CHARS = 4_000;

/** Of one install: what is private in a session is so in all its turns. */
const privateWords = new WeakMap<Redactor, PrivateWords>();

/** The turn as it may be written: secrets marked, digests of what is written. */
export async function redactTurn(
  turn: CapturedTurn,
  redactor: Redactor,
): Promise<Omit<CapturedTurn, 'earlierPrivate'> & { readonly redacted: boolean }> {
  let redacted = false;
  const words = privateWords.get(redactor) ?? createPrivateWords();
  privateWords.set(redactor, words);
  words.hear(turn);
  const messages: CapturedMessage[] = [];
  for (const message of turn.messages) {
    const found = await redactor.full.json(words.tagged(turn.sessionId, message.content));
    redacted ||= found.redacted;
    messages.push(found.redacted ? rewritten(message, found.text) : message);
  }
  const { earlierPrivate: _, ...rest } = turn;
  return { ...rest, messages, redacted };
}

/** The digest of what was there before would let a short secret be guessed. */
function rewritten({ role }: CapturedMessage, content: string): CapturedMessage {
  return { role, content, sha256: createHash('sha256').update(content).digest('hex') };
}

/** What sensor and local compacter need of a turn while it waits. */
export function slimTurn(turn: TurnText): TurnText {
  const parts = turn.parts.map((part) => {
    return part.kind === 'assistant' ? part : { ...part, text: elide(part.text, BUFFERED_TOOL_CHARS) };
  });
  return { ...turn, parts };
}
