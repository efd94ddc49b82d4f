import { createHash } from 'node:crypto';
import type { CapturedMessage, CapturedTurn } from '../../common/turn.ts';
import { privateTexts, type Redactor } from '../../redact/index.ts';
import type { TurnText } from '../model/turn.ts';
import { elide } from '../models/prompts/transcript.ts';
import { blocksOf, stringOf } from './content-blocks.ts';

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

const SESSIONS = 500;
const PIECES = 200;
const LEAST_CHARS = 8;
const WORD_CHARS = 6;

/**
 * What the user marked as private in a session: the same words are private where the assistant says them again, or a
 * tool is given them. It is held in this process alone; turns bring along what their conversation has of it.
 */
interface PrivateWords {
  hear(turn: Pick<CapturedTurn, 'sessionId' | 'messages' | 'earlierPrivate'>): void;
  /** The JSON of a message's content, what was heard in its session between tags. The very same string where nothing was. */
  tagged(sessionId: string, content: string): string;
}

function createPrivateWords(): PrivateWords {
  const heard = new Map<string, Set<string>>();

  return {
    hear({ sessionId, messages, earlierPrivate = [] }) {
      const said = messages.filter(({ role }) => role === 'user').flatMap(blocksOf);
      const now = privateTexts(said.map((block) => stringOf(block['text'])).join('\n'));
      const found = [...earlierPrivate, ...now].flatMap(piecesOf);
      if (found.length === 0) return;
      // What was used last is kept longest.
      const pieces = [...(heard.get(sessionId) ?? []), ...found].slice(-PIECES);
      heard.delete(sessionId);
      heard.set(sessionId, new Set(pieces));
      const [oldest] = heard.keys();
      if (heard.size > SESSIONS && oldest !== undefined) heard.delete(oldest);
    },
    tagged(sessionId, content) {
      const pieces = [...(heard.get(sessionId) ?? [])].sort((one, other) => other.length - one.length);
      return pieces.reduce((text, piece) => {
        const written = JSON.stringify(piece).slice(1, -1);
        return text.includes(written) ? text.replaceAll(written, () => `<private>${written}</private>`) : text;
      }, content);
    },
  };
}

/** The whole, its lines and sentences, and words that look like names or codes: nobody repeats more than that. */
function piecesOf(text: string): string[] {
  const spans = [text, ...text.split('\n'), ...text.split(/(?<=[.!?;])\s+|\n/)].map(bare);
  const words = text.split(/[^\p{L}\p{N}_@./:=+-]+/u).map(bare);
  return [
    ...spans.filter((span) => span.length >= LEAST_CHARS && /\s/.test(span)),
    ...words.filter((word) => word.length >= WORD_CHARS && /\d/.test(word)),
  ];
}

function bare(text: string): string {
  return text.trim().replace(/[.!?,:;]+$/, '');
}
