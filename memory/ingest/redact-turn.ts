import { createHash } from 'node:crypto';
import { LruMap } from '../../common/map.ts';
import type { CapturedMessage, CapturedTurn } from '../../common/turn.ts';
import { findPrivateTexts, type Redactor } from '../../redact/index.ts';
import type { TurnText } from '../model/turn.ts';
import { elide } from '../models/prompts/transcript.ts';
import { blocksOf, stringOf } from './content-blocks.ts';

/** Tool traffic kept per part of a buffered turn; the model reads whole turns from the journal. */
const BUFFERED_TOOL_CHARS = 4_000;

const privateSpans = new WeakMap<Redactor, PrivateSpans>();

/** Redacts secrets and private spans, and hashes what is left. */
export async function redactTurn(
  turn: CapturedTurn,
  redactor: Redactor,
): Promise<Omit<CapturedTurn, 'earlierPrivate'> & { readonly redacted: boolean }> {
  let redacted = false;
  const words = privateSpans.get(redactor) ?? createPrivateSpans();
  privateSpans.set(redactor, words);
  words.collect(turn);
  const messages: CapturedMessage[] = [];
  for (const message of turn.messages) {
    const found = await redactor.full.json(words.tag(turn.sessionId, message.content));
    redacted ||= found.redacted;
    messages.push(found.redacted ? withContent(message, found.text) : message);
  }
  const { earlierPrivate: _, ...rest } = turn;
  return { ...rest, messages, redacted };
}

/** A hash of the original content would allow guessing a short secret. */
function withContent({ role }: CapturedMessage, content: string): CapturedMessage {
  return { role, content, sha256: createHash('sha256').update(content).digest('hex') };
}

/** What topic detection and rule-made drafts need of a buffered turn. */
export function slimTurn(turn: TurnText): TurnText {
  const parts = turn.parts.map((part) => {
    return part.kind === 'assistant' ? part : { ...part, text: elide(part.text, BUFFERED_TOOL_CHARS) };
  });
  return { ...turn, parts };
}

const MAX_SESSIONS = 500;
const MAX_SPANS = 200;
const MIN_SPAN_CHARS = 8;
const MIN_WORD_CHARS = 6;

/**
 * Text that the user marked private in a session, also redacted where the assistant or a tool call repeats it. Kept in
 * memory only; captured turns carry the earlier spans of their conversation.
 */
interface PrivateSpans {
  collect(turn: Pick<CapturedTurn, 'sessionId' | 'messages' | 'earlierPrivate'>): void;
  /** Wraps repeated private text in tags; returns the same string when there is none. */
  tag(sessionId: string, content: string): string;
}

function createPrivateSpans(): PrivateSpans {
  const sessions = new LruMap<string, ReadonlySet<string>>(MAX_SESSIONS);

  return {
    collect({ sessionId, messages, earlierPrivate = [] }) {
      const said = messages.filter(({ role }) => role === 'user').flatMap(blocksOf);
      const now = findPrivateTexts(said.map((block) => stringOf(block['text'])).join('\n'));
      const found = [...earlierPrivate, ...now].flatMap(spansOf);
      if (found.length === 0) return;
      const spans = [...(sessions.get(sessionId) ?? []), ...found].slice(-MAX_SPANS);
      sessions.set(sessionId, new Set(spans));
    },
    tag(sessionId, content) {
      const spans = [...(sessions.peek(sessionId) ?? [])].sort((one, other) => other.length - one.length);
      return spans.reduce((text, span) => {
        const written = JSON.stringify(span).slice(1, -1);
        return text.includes(written) ? text.replaceAll(written, () => `<private>${written}</private>`) : text;
      }, content);
    },
  };
}

/** The whole text, its lines and sentences, and words that look like identifiers. */
function spansOf(text: string): string[] {
  const spans = [text, ...text.split('\n'), ...text.split(/(?<=[.!?;])\s+|\n/)].map(trimPunctuation);
  const words = text.split(/[^\p{L}\p{N}_@./:=+-]+/u).map(trimPunctuation);
  return [
    ...spans.filter((span) => span.length >= MIN_SPAN_CHARS && /\s/.test(span)),
    ...words.filter((word) => word.length >= MIN_WORD_CHARS && /\d/.test(word)),
  ];
}

function trimPunctuation(text: string): string {
  return text.trim().replace(/[.!?,:;]+$/, '');
}
