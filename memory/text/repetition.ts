import { runAtOnce, type Steps } from '../../common/async.ts';
import { LruMap } from '../../common/map.ts';
import { getQuotations, trimEnd, withoutQuotations } from '../../common/text.ts';
import { lowestOrigin, type Origin } from '../../common/turn.ts';
import type { TurnPart, TurnText } from '../model/turn.ts';
import { type CompactSet, createCompactSet } from './compact-set.ts';

const SEQUENCE_WORDS = 5;
const WORD_CHARACTER = /[\p{L}\p{N}_]/u;
/** A URL, address or absolute path identifies a text by itself. */
const PLACE =
  /(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+|(?:(?<!\w)\w+:\/\/|(?<![\w.~-])~?\/)[\w@:%.~/-]{5,}|(?<![\w.-])(?:[\w-]+\.)+[a-z]{2,}\/[\w%.~/-]+/giu;
const PATH = /(?<![\w./~@-])[\w.~@-]*(?:\/[\w.~@-]+)+/g;
/** Of FNV-1a. */
const [BASIS, PRIME] = [0x811c9dc5 | 0, 0x01000193];
const BLANK = 0x20;

/** A text of a turn, in order; `shown`: from a file, a tool or the client. */
export interface FlowText {
  readonly by: 'shown' | 'said' | 'wrote';
  readonly text: string;
}

/** Hashes of each five words in a row, joined by blanks, as `hashText` has them. @param plain  see `plainText` */
export function* getSequences(plain: string): Generator<number> {
  // Running hashes of the last one to five words, so that each character is read once.
  let [five, four, three, two, one] = [BASIS, BASIS, BASIS, BASIS, BASIS];
  let words = 0;
  let isInside = false;
  for (let at = 0; at <= plain.length; at += 1) {
    const isWord = at < plain.length && isWordCharacter(plain, at);
    if (isWord && !isInside) {
      [five, four, three, two, one] = [add(four, BLANK), add(three, BLANK), add(two, BLANK), add(one, BLANK), BASIS];
      words += 1;
    } else if (!isWord && isInside && words >= SEQUENCE_WORDS) yield five;
    isInside = isWord;
    if (!isWord) continue;
    const code = plain.charCodeAt(at);
    five = add(five, code);
    four = add(four, code);
    three = add(three, code);
    two = add(two, code);
    one = add(one, code);
  }
}

const add = (hash: number, code: number): number => Math.imul(hash ^ code, PRIME);

/** Kind of each UTF-16 code unit; 0: not looked up yet. */
const [WORD, OTHER] = [1, 2];
const kinds = new Uint8Array(0x1_0000);

function isWordCharacter(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (code >= 0xd800 && code < 0xe000) {
    const point = text.codePointAt(code < 0xdc00 ? at : at - 1) ?? 0;
    return point > 0xffff && WORD_CHARACTER.test(String.fromCodePoint(point));
  }
  kinds[code] ||= WORD_CHARACTER.test(text.charAt(at)) ? WORD : OTHER;
  return kinds[code] === WORD;
}

/** Without the path of a folder, with which every path in it begins. @param plain  see `plainText` */
export function withoutFolder(plain: string, dir: string | null): string {
  const names = (dir ?? '').normalize('NFKC').toLowerCase().split('/');
  let rest = plain;
  for (let count = names.length; count > 2; count -= 1) rest = rest.replaceAll(names.slice(0, count).join('/'), ' ');
  return rest;
}

/**
 * Hashes of the places in a text and of each five words in a row; a path is one word.
 * @param plain  see `plainText`
 * @param dir  working directory: its path, a beginning of it and what is in it are no places
 */
export function* getShingles(plain: string, dir: string | null = null): Generator<number> {
  const folder = dir?.toLowerCase();
  for (const [match] of plain.matchAll(PLACE)) {
    const place = trimEnd(match.replace(/^\w+:\/\//, ''), './');
    const isNear = folder !== undefined && (folder.startsWith(place) || place.startsWith(`${folder}/`));
    if (!isNear) yield hashText(place);
  }
  yield* getSequences(withoutFolder(plain, dir).replace(PATH, (path) => path.replace(/\W+/g, '_')));
}

/** Calls `read` with each value of the plain text until it returns true; each is a step. Returns whether one did. */
export function* getSome<T>(
  text: string,
  valuesOf: (plain: string) => Iterable<T>,
  read: (value: T) => unknown,
): Steps<boolean> {
  const plain = yield* plainText(text);
  yield;
  for (const value of valuesOf(plain)) {
    if (read(value) === true) return true;
    yield;
  }
  return false;
}

function* plainText(text: string): Steps<string> {
  const normal = text.normalize('NFKC');
  yield;
  const visible = normal.replace(/\p{Cf}/gu, '');
  yield;
  return visible.toLowerCase();
}

/** Text that sessions were shown by files, tools of the project and the client: repeating it does not make it a statement of the user or of Claude. */
export type ShownText = ReturnType<typeof createShownText>;

/** Of all sessions, of which those that rest longest are dropped. */
const MAX_TOTAL = 1_000_000;
/** About 500 KB of text per session; then the older half is dropped. */
const MAX_SHOWN = 100_000;
/** More is in no result that Claude Code sends. */
const SHOWN_CHARS = 200_000;

export function createShownText() {
  const sessions = new LruMap<string, CompactSet>(MAX_TOTAL, ({ size }) => size);
  return {
    /** Reads a turn; returns what the assistant repeats in it and neither it nor the user wrote first. @param dir  working directory */
    *read(sessionId: string, flow: readonly FlowText[], user: string, dir: string | null = null): Steps<number[]> {
      const shown = sessions.peek(sessionId) ?? createCompactSet(MAX_SHOWN);
      // The map counts the size that a value has when it is set.
      sessions.delete(sessionId);
      const repeated = new Set<number>();
      try {
        const own = new Set<number>();
        yield* getSome(withoutQuotations(user), getSequences, (sequence) => void own.add(sequence));
        for (const { by, text } of [{ by: 'shown', text: getQuotations(user) }, ...flow]) {
          const valuesOf = (plain: string) => getSequences(by === 'said' ? withoutFolder(plain, dir) : plain);
          yield* getSome(text.slice(0, SHOWN_CHARS), valuesOf, (sequence) => {
            if (own.has(sequence)) return;
            if (by === 'shown') shown.add(sequence);
            else if (!shown.has(sequence)) own.add(sequence);
            else if (by === 'said') repeated.add(sequence);
          });
        }
      } finally {
        sessions.set(sessionId, shown);
      }
      return [...repeated];
    },
  };
}

/** Origin of a text from these turns: lower where the assistant only repeats there what it was shown. */
export function repeatedOrigin(
  text: string,
  turns: readonly Pick<TurnText, 'repeats' | 'echoes' | 'parts'>[],
  origin: Origin,
): Origin {
  if (turns.some((turn) => echoesIn(text, turn))) return 'external';
  const isRepeated = turns.some(({ repeats }) => repeats !== undefined && repeatsAny(text, repeats));
  return isRepeated ? lowestOrigin([origin, 'tool']) : origin;
}

const repeatsAny = (text: string, repeats: ReadonlySet<number>): boolean =>
  repeats.size > 0 && runAtOnce(getSome(text, getSequences, (sequence) => repeats.has(sequence)));

/** A text that is too short for a shingle is looked for itself. */
function echoesIn(text: string, { echoes, parts }: Pick<TurnText, 'echoes' | 'parts'>): boolean {
  if (echoes === undefined) return false;
  let isShort = true;
  const isEcho = runAtOnce(
    getSome(text, getShingles, (shingle) => {
      isShort = false;
      return echoes.has(shingle);
    }),
  );
  return isEcho || (isShort && parts.some((part) => echoedPassages(part).some((passage) => passage.includes(text))));
}

const echoedPassages = ({ passages = [] }: TurnPart): string[] =>
  passages.flatMap(({ origin, text }) => (origin === 'external' ? [text] : []));

/** FNV-1a, 32 bits: a collision only makes a turn less trusted. */
export function hashText(text: string): number {
  let hash = BASIS;
  for (let at = 0; at < text.length; at += 1) hash = add(hash, text.charCodeAt(at));
  return hash;
}

/** The lines of a text, and whether each only repeats; a sequence may go over the end of a line. */
export function repeatedLines(
  text: string,
  repeats: ReadonlySet<number>,
): { readonly text: string; readonly isRepeated: boolean }[] {
  let before = '';
  return text.split('\n').map((line) => {
    const isRepeated = repeatsAny(`${before} ${line}`, repeats);
    const words = `${before} ${line}`.split(/\s+/);
    before = words.slice(1 - SEQUENCE_WORDS).join(' ');
    return { text: line, isRepeated };
  });
}

/**
 * For each line of a text, whether its paragraph repeats something; a sequence may go over the end of one.
 * @param isRepeated  of a shingle
 * @param dir  see `getShingles`
 */
export function* repeatedParagraphs(
  text: string,
  isRepeated: (shingle: number) => boolean,
  dir: string | null = null,
): Steps<boolean[]> {
  const lines = text.split('\n');
  const marks = lines.map(() => false);
  const repeats = (part: string): Steps<boolean> => getSome(part, (plain) => getShingles(plain, dir), isRepeated);
  /** The last words before a paragraph, and where theirs begin. */
  let before: { readonly word: string; readonly start: number }[] = [];
  for (let start = 0, end = 0; start < lines.length; start = end + 1) {
    end = start;
    while (end < lines.length && lines[end]?.trim() !== '') end += 1;
    const paragraph = lines.slice(start, end).join('\n');
    const words = paragraph.split(/\s+/).filter((word) => word !== '');
    const over = [...before.map(({ word }) => word), ...words.slice(0, SEQUENCE_WORDS - 1)].join(' ');
    if (before.length > 0 && (yield* repeats(over))) marks.fill(true, before[0]?.start, end);
    else if (yield* repeats(paragraph)) marks.fill(true, start, end);
    before = [...before, ...words.map((word) => ({ word, start }))].slice(1 - SEQUENCE_WORDS);
  }
  return marks;
}
