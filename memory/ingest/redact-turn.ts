import { runInSlices, type Steps } from '../../common/async.ts';
import { LruMap, memoize } from '../../common/map.ts';
import { sha256, trimEnd } from '../../common/text.ts';
import type { CapturedMessage, CapturedTurn, Origin } from '../../common/turn.ts';
import { findPrivateTexts, isJson, type Redactor, stringLiterals } from '../../redact/index.ts';
import type { TurnText } from '../model/turn.ts';
import { elide } from '../models/prompts/transcript.ts';
import { DOCUMENT } from './chunk-document.ts';
import { digestText } from './content-blocks.ts';
import { findCandidates, ownTexts } from './turn-trust.ts';

/** Tool traffic kept per part of a buffered turn; the model reads turns from the journal. */
const BUFFERED_TOOL_CHARS = 4_000;

/** Redacts secrets and private spans, and hashes what is left. */
export async function redactTurn(
  turn: CapturedTurn,
  redactor: Redactor,
): Promise<Omit<CapturedTurn, 'earlierPrivate'> & { readonly redacted: boolean }> {
  let redacted = false;
  const words = getPrivateSpans(redactor);
  await runInSlices(words.collect(turn));
  const messages: CapturedMessage[] = [];
  const origins: Record<string, Origin> = { ...turn.origins };
  for (const message of turn.messages) {
    const powerless = turn.model === DOCUMENT ? message.content : withoutForeignTags(message);
    const result = await redactor.inSlices.json(words.tag(turn.sessionId, powerless));
    const redaction = { ...result, text: result.text.replaceAll(POWERLESS, '<') };
    redacted ||= redaction.redacted;
    // A hash of the original content would allow guessing a short secret.
    const { text: content } = redaction;
    const own = redaction.redacted ? { role: message.role, content, sha256: sha256(content) } : message;
    messages.push(own);
    if (!redaction.redacted || turn.origins === undefined) continue;
    const before = findCandidates(message);
    for (const [at, text] of findCandidates(own).entries()) {
      const origin = turn.origins[digestText(before[at] ?? '')];
      if (origin !== undefined) origins[digestText(text)] = origin;
    }
  }
  const { earlierPrivate: _, ...rest } = turn;
  return { ...rest, ...(turn.origins === undefined ? {} : { origins }), messages, redacted };
}

/** Between `<` and the name of a tag: a character of private use, taken out again. */
const POWERLESS = '<\ue0ff';
const PRIVATE_TAG = /<(?=(?:[\s/]|\\[nrtf]){0,17}private)/gi;

/** The tag is the user's: in what files, tools, the client and the assistant say it hides nothing. */
function withoutForeignTags(message: CapturedMessage): string {
  if (message.content.search(PRIVATE_TAG) < 0 || !isJson(message.content)) return message.content;
  const typed = new Set(message.role === 'user' ? ownTexts(message) : []);
  const parts: string[] = [];
  let at = 0;
  for (const { start, end, value } of stringLiterals(message.content)) {
    if (typed.has(value)) continue;
    parts.push(message.content.slice(at, start), message.content.slice(start, end).replace(PRIVATE_TAG, POWERLESS));
    at = end;
  }
  return [...parts, message.content.slice(at)].join('');
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
  collect(turn: Pick<CapturedTurn, 'sessionId' | 'messages' | 'earlierPrivate'>): Steps<void>;
  /** Wraps repeated private text in tags; returns the same string when there is none. */
  tag(sessionId: string, content: string): string;
}

const getPrivateSpans = memoize((_: Redactor): PrivateSpans => {
  const sessions = new LruMap<string, ReadonlySet<string>>(MAX_SESSIONS);

  return {
    *collect({ sessionId, messages, earlierPrivate = [] }) {
      const texts: string[] = [];
      for (const message of messages.filter(({ role }) => role === 'user')) {
        texts.push(...ownTexts(message));
        yield;
      }
      const now = findPrivateTexts(texts.join('\n'));
      const ranges = [...earlierPrivate, ...now].flatMap(getSpans);
      if (ranges.length === 0) return;
      const spans = [...(sessions.get(sessionId) ?? []), ...ranges].slice(-MAX_SPANS);
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
});

/** The whole text, its lines and sentences, and words that look like identifiers. */
function getSpans(text: string): string[] {
  const spans = [text, ...text.split('\n'), ...text.split(/(?<=[.!?;])\s+|\n/)].map(trimPunctuation);
  const words = text.split(/[^\p{L}\p{N}_@./:=+-]+/u).map(trimPunctuation);
  return [
    ...spans.filter((span) => span.length >= MIN_SPAN_CHARS && /\s/.test(span)),
    ...words.filter((word) => word.length >= MIN_WORD_CHARS && /\d/.test(word)),
  ];
}

function trimPunctuation(text: string): string {
  return trimEnd(text.trim(), '.!?,:;');
}
