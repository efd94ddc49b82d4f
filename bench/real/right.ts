/**
 * When a turn is right for a question, the same for every method. The patterns of the answers are loose, so that a turn
 * that only mentions the word somewhere must not count: around one match of the pattern, or in the turn's prompts,
 * there have to be at least half of the question's content words (compared by their first five letters), and two
 * where the question has as many. A pattern's alternative with an upper-case letter is compared with case, any other
 * without. A rewording is judged by the words of the question that it rewords.
 *
 * What is injected, or a snippet, holds the answer when the pattern matches and one content word is there.
 */
import { findWords } from '../../memory/bench/bm25.ts';
import type { RealTurn } from './corpus.ts';
import type { Further } from './further.ts';

export interface Asked {
  readonly question: string;
  /** Pattern of the answer. */
  readonly answer: string;
  /** What is asked: the question itself, or a rewording. */
  readonly prompt: string;
  /** Where it is known: this turn is right, and its neighbors are where the pattern matches. */
  readonly turn?: Pick<Further, 'session' | 'at'>;
}

const AROUND_CHARS = 700;
const PROMPT_CHARS = 1_500;
const STEM = 5;

const STOP = new Set(
  `a about after again all an and any are as at be been but by can cannot could did do does for from get had has have how
  i if in instead into is it its me no not of off on one or our out same shall should so still than that the their then
  there they this to two until up us was we were what when where which while who whose why will with would you your`
    .split(/\s+/)
    .filter(Boolean),
);

export function isRight({ text, prompts, ...place }: RealTurn, asked: Asked): boolean {
  if (asked.turn !== undefined) {
    const { session, at } = asked.turn;
    const off = place.sessionId.startsWith(session) ? Math.abs(place.at - at) : 2;
    return off === 0 || (off === 1 && getMatches(text, asked.answer).length > 0);
  }
  const stems = getStems(asked.question);
  const least = Math.max(Math.min(2, stems.length), Math.ceil(stems.length / 2));
  const told = prompts.join('\n').slice(0, PROMPT_CHARS);
  return getMatches(text, asked.answer).some((at) => {
    const near = `${told}\n${text.slice(Math.max(0, at - AROUND_CHARS), at + AROUND_CHARS)}`.toLowerCase();
    return stems.filter((stem) => near.includes(stem)).length >= least;
  });
}

export function holdsAnswer(text: string, { question, answer }: Asked): boolean {
  const lower = text.toLowerCase();
  return getMatches(text, answer).length > 0 && getStems(question).some((stem) => lower.includes(stem));
}

function getStems(question: string): string[] {
  const words = findWords(question).filter((word) => word.length > 1 && !STOP.has(word));
  return [...new Set(words.map((word) => word.slice(0, STEM)))];
}

/** Where the pattern matches. */
function getMatches(text: string, pattern: string): number[] {
  return pattern.split('|').flatMap((alternative) => {
    const flags = /\p{Lu}/u.test(alternative) ? 'gu' : 'giu';
    return [...text.matchAll(new RegExp(alternative, flags))].map(({ index }) => index);
  });
}
