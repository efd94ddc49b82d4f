import { contentTokens } from '../text/keywords.ts';
import { tokenize, uniqueTokens } from '../text/tokenizer.ts';
import { coveredWorth, type QueryWeights } from './query-weights.ts';

export interface Snippet {
  /** Whole lines or sentences, verbatim apart from trimming. */
  readonly text: string;
  /** Relevance: `worth` adjusted by the kind of text. */
  readonly rank: number;
  /** Weight of the query terms in it, or, discounted, in the question before it. */
  readonly worth: number;
  /** The question before it if that contributed to `worth`, else ''. */
  readonly asked: string;
}

export interface SnippetRules {
  /** Weight of the query terms in the previous turn, for questions without content words. */
  readonly carried?: number;
  readonly maxChars: number;
  /** The query asks for a command or path, so tool calls may answer it. */
  readonly callsAnswer: boolean;
  /** Pattern of an answer of the requested type, if any. */
  readonly kind: RegExp | null;
}

const READ_CHARS = 100_000;
const SENTENCE_END = /(?<=[.!?])\s+|(?<=[。！？])/u;
/** A question may repeat the query but does not answer it. */
const QUESTION_SHARE = 0.5;
/** Text after a matching question inherits this share of its weight, for `REPLY_PIECES` pieces. */
const LENT_SHARE = 0.65;
const REPLY_PIECES = 4;
/** A question with at most this many content words depends on the text before it. */
const LEANS_WORDS = 1;
/** Prefers lines with a figure, path or name. */
const EXACT_BONUS = 1.15;
/** Prefers lines of the requested answer type. */
const KIND_BONUS = 1.35;
/** Text right before a question usually introduces it. */
const LEAD_SHARE = 0.7;
const EXACT = /\d|[\w-]+[./_][\w-]+|`[^`]+`/;
/** A tool call as `saidText` renders it: tool name, then input. */
const CALL = /^\w+ \{"/;
const CALL_SHARE = 0.4;
const CALL_SHARE_ASKED = 0.85;

interface Question {
  readonly text: string;
  readonly worth: number;
  /** Number of following pieces that may answer it. */
  readonly left: number;
}

const NO_QUESTION: Question = { text: '', worth: 0, left: 0 };

/** The line of `text` (or sentence of a long line) that best matches the query; null if none matches. */
export function bestSnippet(text: string, query: QueryWeights, rules: SnippetRules): Snippet | null {
  const worthOf = worthIn(query);
  let question = NO_QUESTION;
  let best: Snippet | null = null;
  for (const line of text.slice(0, READ_CHARS).split('\n')) {
    if (question.left === 0 && !(rules.carried && isQuestion(line)) && !worthOf.mayMatch(line)) continue;
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

/** A substring check of stems rejects most lines before they are tokenized. */
function worthIn(query: QueryWeights): { mayMatch(text: string): boolean; piece(text: string): number } {
  const roots = [...query.terms.keys()].map((term) => (term.length > 4 ? term.slice(0, -1) : term));
  const mayMatch = (text: string): boolean => {
    const lower = text.toLowerCase();
    return roots.some((root) => lower.includes(root));
  };
  return { mayMatch, piece: (text) => (mayMatch(text) ? coveredWorth(query, new Set(tokenize(text))) : 0) };
}

function asked(text: string, worthOf: (text: string) => number, { carried = 0 }: SnippetRules): Question {
  const own = worthOf(text);
  const worth = carried > own && contentTokens(text).length <= LEANS_WORDS ? carried : own;
  return worth === 0 ? NO_QUESTION : { text, worth, left: REPLY_PIECES };
}

function shareOf(piece: string, asks: boolean, { callsAnswer, kind }: SnippetRules): number {
  if (asks) return QUESTION_SHARE;
  if (CALL.test(piece)) return callsAnswer ? CALL_SHARE_ASKED : CALL_SHARE;
  return (EXACT.test(piece) ? EXACT_BONUS : 1) * (kind?.test(piece) === true ? KIND_BONUS : 1);
}

const isQuestion = (text: string): boolean => text.endsWith('?') || text.endsWith('？');

/** Every piece of a text that `bestSnippet` may return. */
export function piecesOf(text: string, maxChars: number): string[] {
  return text.split('\n').flatMap((line) => piecesOfLine(line.trim(), maxChars));
}

/** Sentences joined up to `maxChars`; a question stays separate from its answer. */
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

/** Splits an overlong sentence at words; words longer than `maxChars` are dropped. */
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

/** A later line with at least this share of the best rank is preferred, as it is more current. */
const NEAR = 0.85;
/** The same for a line with a different figure for the same subject. */
const REVISED = 0.45;
const SHARED_TERMS = 2;
const SHARED_WORDS = 3;

/** @param candidates  the best line of each turn, oldest first */
export function chooseQuote<T extends Snippet>(candidates: readonly T[], query: QueryWeights): T | null {
  const best = candidates.reduce<T | null>((top, each) => (each.rank > (top?.rank ?? 0) ? each : top), null);
  if (best === null) return null;
  const later = candidates.slice(candidates.indexOf(best) + 1).reverse();
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
