import { isSearched, type MemoryNode } from '../model/node.ts';
import { getParts } from '../model/turn.ts';
import type { TurnWords } from '../search/search-index.ts';
import { isPast } from '../text/validity.ts';
import { memoryLine } from './format-memory.ts';
import { type Passage, PIECE_END } from './passages.ts';
import { isQuarantined } from './quarantine.ts';
import type { RecallHit } from './types.ts';

export type Phrase = NonNullable<ReturnType<typeof readPhrase>>;

const QUOTED = /^\s*["“„«](.+)["”»]\s*$/su;
/** Scripts without spaces between words. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]{4}/u;
/** Other spaces than single ones. */
const UNEVEN = /[^\S ]|\s\s/;
/** Characters of a piece that are shown before and after a phrase in a long one. */
const AROUND = 200;

/** What of a query can be found word for word: several words, or a text between quotation marks (`isQuoted`). */
export function readPhrase(query: string) {
  const quoted = QUOTED.exec(query)?.[1];
  const text = plain(quoted ?? query);
  const isPhrase = quoted !== undefined || text.includes(' ') || UNSPACED.test(text);
  return isPhrase && text !== '' ? { text, isQuoted: quoted !== undefined } : null;
}

/** Memories that have the phrase in what they say themselves. */
export function phraseInNodes(phrase: Phrase, nodes: readonly MemoryNode[]): RecallHit[] {
  const holds = holdsPhrase(phrase);
  const hits: RecallHit[] = [];
  for (const node of nodes) {
    const { title = '', summary, outcome = '', decisions = [], open = [], facts } = node;
    const item = [...decisions, ...open].find(({ text, closed }) => closed === undefined && holds(text));
    const source =
      item?.text ?? [title, outcome, summary].find(holds) ?? facts.find(({ value }) => holds(value))?.value;
    if (source === undefined || !isShown(node)) continue;
    const { origin, turn } = item ?? { origin: node.origin, turn: node.turns[0] ?? '' };
    hits.push(getHit(node, { text: findPiece(phrase, source), by: 'assistant', origin, asked: '' }, turn));
  }
  return hits;
}

/** Turns that have the phrase, under the memory that covers them. @param turns  as they are indexed, by id */
export function phraseInTurns(
  phrase: Phrase,
  turns: ReadonlyMap<string, TurnWords>,
  getNode: (turnId: string) => MemoryNode | undefined,
): RecallHit[] {
  const holds = holdsPhrase(phrase);
  return [...turns].flatMap(([turnId, { text, origin }]) => {
    const part = getParts(text, origin).find((each) => holds(each.text));
    const node = part === undefined ? undefined : getNode(turnId);
    if (part === undefined || node === undefined || !isShown(node)) return [];
    return [getHit(node, { ...part, text: findPiece(phrase, part.text), asked: '' }, turnId)];
  });
}

const isShown = (node: MemoryNode): boolean => isSearched(node) && !isPast(node) && !isQuarantined(node);

function getHit(node: MemoryNode, passage: Passage, turn: string): RecallHit {
  return { node, score: 1, line: memoryLine(node, passage), raw: { text: passage.text, turn }, lanes: {} };
}

/** The sentence or line with the phrase; of a long one what is around it. */
function findPiece({ text: phrase }: Phrase, text: string): string {
  const piece = text.split(PIECE_END).find((each) => plain(each).includes(phrase)) ?? text;
  const at = Math.max(0, piece.toLowerCase().indexOf(phrase));
  return piece.slice(Math.max(0, at - AROUND), at + phrase.length + AROUND).trim();
}

/** Spaces are normalized only where a text needs it and has the longest word: copying all memories costs more than search. */
function holdsPhrase({ text: phrase }: Phrase): (text: string) => boolean {
  const longest = phrase.split(' ').reduce((a, b) => (b.length > a.length ? b : a));
  const mayHold = anyCase(longest);
  return (text) => {
    if (!mayHold.test(text)) return false;
    const lower = text.toLowerCase();
    return lower.includes(phrase) || (lower.includes(longest) && UNEVEN.test(lower) && plain(lower).includes(phrase));
  };
}

/** Matches every text of which the lower case has this word. */
function anyCase(word: string): RegExp {
  if (/[^\x21-\x7e]/.test(word)) return /(?:)/;
  // The lower case of İ begins with i, which `i` does not know.
  return new RegExp(word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&').replaceAll('i', '[iİ]'), 'iu');
}

const plain = (text: string): string => text.toLowerCase().replace(/\s+/g, ' ').trim();
