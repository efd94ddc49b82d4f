import { contentTokens } from '../text/keywords.ts';
import { tokenize, uniqueTokens } from '../text/tokenizer.ts';
import { coveredWorth, type QueryWeights } from './query-weights.ts';

export interface Snippet {
  /** Whole lines or sentences of the text, verbatim but for white space at its ends. */
  readonly text: string;
  /** How well it answers; worth of the query's terms in it and, less, in the question it follows. */
  readonly rank: number;
  /** Worth of the query's terms in it and in the question it follows. */
  readonly worth: number;
  /** The question it follows, where that lent it worth, else ''. */
  readonly asked: string;
}

export interface SnippetRules {
  /** Worth of the query's terms in the turn before: what a prompt without words of its own leans on. */
  readonly carried?: number;
  readonly maxChars: number;
  /** The query names a command, path or the like: calls of tools answer too. */
  readonly callsAnswer: boolean;
  /** How an answer looks; null where the query does not say. */
  readonly kind: RegExp | null;
}

const READ_CHARS = 100_000;
const SENTENCE_END = /(?<=[.!?])\s+|(?<=[。！？])/u;
/** A line that asks repeats the query and answers nothing. */
const QUESTION_SHARE = 0.5;
/** What follows a question answers it, whatever its words; so many pieces long. */
const LENT_SHARE = 0.65;
const REPLY_PIECES = 4;
/** A question with no more words of its own leans on what was said before it. */
const LEANS_WORDS = 1;
/** Between two lines that say as much the one with a figure, path or name is the one to show. */
const EXACT_BONUS = 1.15;
/** A line that holds a time where the query asks when, a figure where it asks how many. */
const KIND_BONUS = 1.35;
/** What stands before a question and gives nothing exact belongs to it. */
const LEAD_SHARE = 0.7;
const EXACT = /\d|[\w-]+[./_][\w-]+|`[^`]+`/;
/** How `saidText` names a call: tool, then its input. Its words are keys and code, seldom what was asked for. */
const CALL = /^\w+ \{"/;
const CALL_SHARE = 0.4;
const CALL_SHARE_ASKED = 0.85;

interface Question {
  readonly text: string;
  readonly worth: number;
  /** Pieces after it that may still answer it. */
  readonly left: number;
}

const NOTHING_ASKED: Question = { text: '', worth: 0, left: 0 };

/** The line (or sentence of a long line) of `text` that answers most of the query; null where none does. */
export function bestSnippet(text: string, query: QueryWeights, rules: SnippetRules): Snippet | null {
  const worthOf = worthIn(query);
  let question = NOTHING_ASKED;
  let best: Snippet | null = null;
  for (const line of text.slice(0, READ_CHARS).split('\n')) {
    if (question.left === 0 && !(rules.carried && isQuestion(line)) && !worthOf.mayStandIn(line)) continue;
    const pieces = piecesOfLine(line.trim(), rules.maxChars);
    for (const [at, piece] of pieces.entries()) {
      const asks = isQuestion(piece);
      const lent = asks || question.left === 0 ? 0 : question.worth * LENT_SHARE;
      const worth = Math.max(worthOf.piece(piece), lent);
      if (worth > 0) {
        const lead = isQuestion(pieces[at + 1] ?? '') && !EXACT.test(piece) ? LEAD_SHARE : 1;
        const rank = worth * lead * shareOf(piece, asks, rules);
        if (rank > (best?.rank ?? 0)) best = { text: piece, rank, worth, asked: lent > 0 ? question.text : '' };
      }
      if (asks) question = asked(`${pieces[at - 1] ?? ''} ${piece}`.trim(), worthOf.piece, rules);
      else if (question.left > 0) question = { ...question, left: question.left - 1 };
    }
  }
  return best;
}

/** Most lines share nothing with the query; looking for stems is far cheaper than taking each apart. */
function worthIn(query: QueryWeights): { mayStandIn(text: string): boolean; piece(text: string): number } {
  const roots = [...query.terms.keys()].map((term) => (term.length > 4 ? term.slice(0, -1) : term));
  const mayStandIn = (text: string): boolean => {
    const lower = text.toLowerCase();
    return roots.some((root) => lower.includes(root));
  };
  return { mayStandIn, piece: (text) => (mayStandIn(text) ? coveredWorth(query, new Set(tokenize(text))) : 0) };
}

/** "What is the cause?" asks for the cause of what was talked about before. */
function asked(text: string, worthOf: (text: string) => number, { carried = 0 }: SnippetRules): Question {
  const own = worthOf(text);
  const worth = carried > own && contentTokens(text).length <= LEANS_WORDS ? carried : own;
  return worth === 0 ? NOTHING_ASKED : { text, worth, left: REPLY_PIECES };
}

function shareOf(piece: string, asks: boolean, { callsAnswer, kind }: SnippetRules): number {
  if (asks) return QUESTION_SHARE;
  if (CALL.test(piece)) return callsAnswer ? CALL_SHARE_ASKED : CALL_SHARE;
  return (EXACT.test(piece) ? EXACT_BONUS : 1) * (kind?.test(piece) === true ? KIND_BONUS : 1);
}

const isQuestion = (text: string): boolean => text.endsWith('?') || text.endsWith('？');

/** Everything of a text that `bestSnippet` could give. */
export function piecesOf(text: string, maxChars: number): string[] {
  return text.split('\n').flatMap((line) => piecesOfLine(line.trim(), maxChars));
}

/** The line's sentences, each joined with the next while they fit; a question is kept apart from its answer. */
function piecesOfLine(line: string, maxChars: number): string[] {
  if (CALL.test(line) && line.length <= maxChars) return [line];
  const pieces: string[] = [];
  for (const sentence of line.split(SENTENCE_END)) {
    const last = pieces.at(-1);
    const fits = last !== undefined && last.length + sentence.length < maxChars;
    if (fits && !isQuestion(last) && !isQuestion(sentence)) pieces[pieces.length - 1] = `${last} ${sentence}`;
    else pieces.push(...wordWindows(sentence, maxChars));
  }
  return pieces;
}

/** A sentence beyond all measure, in stretches of whole words; a word that fits nowhere is left out. */
function wordWindows(sentence: string, maxChars: number): string[] {
  if (sentence.length <= maxChars) return [sentence];
  const windows: string[] = [];
  for (const word of sentence.split(/\s+/)) {
    if (word.length > maxChars) continue;
    const last = windows.at(-1);
    if (last !== undefined && last.length + word.length < maxChars) windows[windows.length - 1] = `${last} ${word}`;
    else windows.push(word);
  }
  return windows;
}

/** From this share of the best rank on a later line is as good: what was said last holds. */
const NEAR = 0.85;
/** The same for a line that gives another figure for the same thing. */
const REVISED = 0.45;
const SHARED_TERMS = 2;
const SHARED_WORDS = 3;

/** The line to show of those that each turn offers, oldest first. */
export function chooseRaw<T extends Snippet>(offered: readonly T[], query: QueryWeights): T | null {
  const best = offered.reduce<T | null>((top, each) => (each.rank > (top?.rank ?? 0) ? each : top), null);
  if (best === null) return null;
  const later = offered.slice(offered.indexOf(best) + 1).reverse();
  const holds = (each: T): boolean =>
    each.rank >= best.rank * NEAR || (each.rank >= best.rank * REVISED && revises(each.text, best.text, query));
  return later.find(holds) ?? best;
}

function revises(text: string, former: string, { terms }: QueryWeights): boolean {
  const known = new Set(uniqueTokens(former));
  const tokens = uniqueTokens(text);
  const shared = tokens.filter((token) => known.has(token) && !isFigure(token));
  const figures = tokens.filter(isFigure);
  return (
    figures.some((figure) => !known.has(figure)) &&
    [...known].some(isFigure) &&
    shared.length >= SHARED_WORDS &&
    shared.filter((token) => terms.has(token)).length >= SHARED_TERMS
  );
}

const isFigure = (token: string): boolean => /^\d/.test(token);
