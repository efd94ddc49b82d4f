import type { CapturedTurn } from '../../common/turn.ts';
import { privateTexts } from '../../redact/index.ts';
import { blocksOf, stringOf } from './content-blocks.ts';

const SESSIONS = 500;
const PIECES = 200;
const LEAST_CHARS = 8;
const WORD_CHARS = 6;

/**
 * What the user marked as private in a session: the same words are private where the assistant says them again, or a
 * tool is given them. It is held in this process alone; turns bring along what their conversation has of it.
 */
export interface PrivateWords {
  hear(turn: Pick<CapturedTurn, 'sessionId' | 'messages' | 'earlierPrivate'>): void;
  /** The JSON of a message's content, what was heard in its session between tags. The very same string where nothing was. */
  tagged(sessionId: string, content: string): string;
}

export function createPrivateWords(): PrivateWords {
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
