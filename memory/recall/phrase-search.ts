import { isSearched, type MemoryNode } from '../model/node.ts';
import { partsOf, type SpokenPart, spokenText, type TurnText, withoutToolOutput } from '../model/turn.ts';
import { isPast } from '../text/validity.ts';
import { memoryLine } from './format-memory.ts';
import type { Passage } from './passages.ts';
import { isQuarantined } from './quarantine.ts';
import type { RecallHit } from './types.ts';

export interface Phrase {
  /** Lower case, single spaces. */
  readonly text: string;
  /** Whether the user put it between quotation marks. */
  readonly isQuoted: boolean;
}

const QUOTED = /^\s*["“„«](.+)["”»]\s*$/su;
/** Scripts without spaces between words. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]{4}/u;
const PIECE_END = /\n+|(?<=[.!?;])\s+|(?<=[。！？])/gu;
/** Characters of a piece that are shown before and after a phrase in a long one. */
const AROUND = 200;

/** What of a query can be found word for word: several words, or a text between quotation marks. */
export function readPhrase(query: string): Phrase | null {
  const quoted = QUOTED.exec(query)?.[1];
  const text = plain(quoted ?? query);
  const isPhrase = quoted !== undefined || text.includes(' ') || UNSPACED.test(text);
  return isPhrase && text !== '' ? { text, isQuoted: quoted !== undefined } : null;
}

/** Memories that have the phrase in what they say themselves. */
export function phraseInNodes(phrase: Phrase, nodes: readonly MemoryNode[]): RecallHit[] {
  return nodes.filter(isShown).flatMap((node) => {
    const { title = '', summary, outcome = '', decisions = [], open = [], facts } = node;
    const items = [...decisions, ...open].map(({ text, origin, turn }) => ({ text, origin, turn }));
    const own = [title, outcome, summary, ...facts.map(({ value }) => value)];
    const texts = [...items, ...own.map((text) => ({ text, origin: node.origin, turn: node.turns[0] ?? '' }))];
    const found = texts.find(({ text }) => plain(text).includes(phrase.text));
    if (found === undefined) return [];
    const passage: Passage = { text: pieceWith(phrase, found.text), by: 'assistant', origin: found.origin, asked: '' };
    return [hitOf(node, passage, found.turn)];
  });
}

/** Turns that have the phrase, under the memory that covers them. */
export function phraseInTurns(
  phrase: Phrase,
  turns: readonly TurnText[],
  nodeOf: (turnId: string) => MemoryNode | undefined,
): RecallHit[] {
  return turns.flatMap((turn) => {
    const isThere = ({ text }: SpokenPart): boolean => plain(text).includes(phrase.text);
    const part = partsOf(spokenText(turn), withoutToolOutput(turn).origin).find(isThere);
    const node = part === undefined ? undefined : nodeOf(turn.turnId);
    if (part === undefined || node === undefined || !isShown(node)) return [];
    return [hitOf(node, { ...part, text: pieceWith(phrase, part.text), asked: '' }, turn.turnId)];
  });
}

function isShown(node: MemoryNode): boolean {
  return isSearched(node) && !isPast(node) && !isQuarantined(node);
}

function hitOf(node: MemoryNode, passage: Passage, turn: string): RecallHit {
  return { node, score: 1, line: memoryLine(node, passage), raw: { text: passage.text, turn }, lanes: {} };
}

/** The sentence or line with the phrase; of a long one what is around it. */
function pieceWith({ text: phrase }: Phrase, text: string): string {
  const piece = text.split(PIECE_END).find((each) => plain(each).includes(phrase)) ?? text;
  const at = Math.max(0, piece.toLowerCase().indexOf(phrase));
  return piece.slice(Math.max(0, at - AROUND), at + phrase.length + AROUND).trim();
}

function plain(text: string): string {
  return text.toLowerCase().replace(/\s+/g, ' ').trim();
}
