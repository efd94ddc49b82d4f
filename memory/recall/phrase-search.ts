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

/** The first `most` memories that have the phrase in what they say themselves. */
export function phraseInNodes(phrase: Phrase, nodes: readonly MemoryNode[], most: number): RecallHit[] {
  const pattern = patternOf(phrase);
  const hits: RecallHit[] = [];
  for (const node of nodes) {
    if (hits.length === most) break;
    if (!isShown(node)) continue;
    const { title = '', summary, outcome = '', decisions = [], open = [], facts } = node;
    const items = [...decisions, ...open].map(({ text, origin, turn }) => ({ text, origin, turn }));
    const own = [title, outcome, summary, ...facts.map(({ value }) => value)];
    const texts = [...items, ...own.map((text) => ({ text, origin: node.origin, turn: node.turns[0] ?? '' }))];
    const found = texts.find(({ text }) => pattern.test(text));
    if (found === undefined) continue;
    const { origin, turn } = found;
    hits.push(hitOf(node, { text: pieceWith(pattern, found.text), by: 'assistant', origin, asked: '' }, turn));
  }
  return hits;
}

/** Turns that have the phrase, under the memory that covers them. */
export function phraseInTurns(
  phrase: Phrase,
  turns: readonly TurnText[],
  nodeOf: (turnId: string) => MemoryNode | undefined,
): RecallHit[] {
  const pattern = patternOf(phrase);
  return turns.flatMap((turn) => {
    const isThere = ({ text }: SpokenPart): boolean => pattern.test(text);
    const part = partsOf(spokenText(turn), withoutToolOutput(turn).origin).find(isThere);
    const node = part === undefined ? undefined : nodeOf(turn.turnId);
    if (part === undefined || node === undefined || !isShown(node)) return [];
    return [hitOf(node, { ...part, text: pieceWith(pattern, part.text), asked: '' }, turn.turnId)];
  });
}

function isShown(node: MemoryNode): boolean {
  return isSearched(node) && !isPast(node) && !isQuarantined(node);
}

function hitOf(node: MemoryNode, passage: Passage, turn: string): RecallHit {
  return { node, score: 1, line: memoryLine(node, passage), raw: { text: passage.text, turn }, lanes: {} };
}

/** The sentence or line with the phrase; of a long one what is around it. */
function pieceWith(pattern: RegExp, text: string): string {
  const piece = text.split(PIECE_END).find((each) => pattern.test(each)) ?? text;
  const found = pattern.exec(piece);
  const at = found?.index ?? 0;
  return piece.slice(Math.max(0, at - AROUND), at + (found?.[0].length ?? 0) + AROUND).trim();
}

/** Runs on the text as it is: a copy of every memory in lower case takes longer than all else that a search does. */
function patternOf({ text }: Phrase): RegExp {
  const words = text.split(' ').map((word) => word.replace(/[$()*+./?[\\\]^{|}]/g, '\\$&'));
  return new RegExp(words.join('\\s+'), 'iu');
}

function plain(text: string): string {
  return text.toLowerCase().replace(/\s+/g, ' ').trim();
}
