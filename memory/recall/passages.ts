import { isCleanOrigin, lowestOrigin, type Origin } from '../../common/turn.ts';
import type { SpokenPart } from '../model/turn.ts';
import { tokenize } from '../text/tokenizer.ts';
import { typedText } from '../text/typed-text.ts';
import { computeCoverage, measureCoverage, type QueryTerms } from './relevance-filter.ts';

/** The place in a turn that answers a query, verbatim. */
export interface Passage {
  readonly text: string;
  readonly by: SpokenPart['by'];
  readonly origin: Origin;
  /** The short prompt that an assistant's passage answers; '' if it is long or is the passage itself. */
  readonly asked: string;
}

export interface PassageRules {
  readonly maxChars: number;
  /** The query asks for a command or path, so tool calls may answer it. */
  readonly callsAnswer: boolean;
  /** States what is no longer so. */
  readonly isPast: (text: string) => boolean;
}

const READ_CHARS = 100_000;
export const PIECE_END = /\n+|(?<=[.!?;])\s+|(?<=[。！？])/gu;
const ASKED_CHARS = 120;
/** Of a passage of a long prompt, the room for what the turn says to it. */
const OUTCOME_CHARS = 240;
/** An answer with this share of its words in the prompt repeats it. */
const REPEATED = 0.8;
const QUESTION = /[?？]\s*$/u;
/** A question repeats the query more often than it answers it. */
const QUESTION_SHARE = 0.7;
/** The last answer of a turn concludes it. */
const LAST_BONUS = 0.1;

interface Piece {
  readonly from: number;
  readonly to: number;
  readonly tokens: ReadonlySet<string>;
}

interface Range {
  readonly first: number;
  readonly last: number;
  readonly coverage: number;
}

/** The passage with most of the query's terms, extended to whole sentences around them; null if none contains any. */
export function bestPassage(parts: readonly SpokenPart[], terms: QueryTerms, rules: PassageRules): Passage | null {
  const prompt = parts.find(({ by }) => by === 'user');
  const promptText = prompt === undefined ? '' : typedText(prompt.text.slice(0, READ_CHARS)).trim();
  const isShort = promptText !== '' && promptText.length <= ASKED_CHARS;
  const isQuestion = QUESTION.test(promptText);
  const last = parts.findLast(({ by }) => by === 'assistant');
  let best: { readonly score: number; readonly passage: Passage } | null = null;
  const spoken = parts.filter(({ by }) => by !== 'call');
  const covers = ({ text }: SpokenPart): boolean => computeCoverage(terms, text.slice(0, READ_CHARS)) > 0;
  const isSpoken = !rules.callsAnswer && spoken.some(covers);
  for (const part of isSpoken ? spoken : parts) {
    const share = part.by === 'user' && last !== undefined && isQuestion ? QUESTION_SHARE : 1;
    const context = new Set(part.by === 'assistant' && isShort ? tokenize(promptText) : []);
    const pieces = getPieces(part.text.slice(0, READ_CHARS), rules.maxChars);
    const range = bestRange(pieces, terms, { context, text: part.text, ...rules });
    if (range === null) continue;
    const score = range.coverage * share + (part === last ? LAST_BONUS : 0);
    if (best !== null && score <= best.score) continue;
    const text = getText(part.text, pieces, range, rules.maxChars);
    const isAnswer = part.by === 'assistant' && isShort;
    best = { score, passage: { text, by: part.by, origin: part.origin, asked: isAnswer ? promptText : '' } };
  }
  if (best === null || prompt === undefined || last === undefined) return best?.passage ?? null;
  const room = rules.maxChars - OUTCOME_CHARS;
  if (!isShort)
    return room > 0 && promptText.length > room ? withOutcome(best.passage, parts, terms, rules) : best.passage;
  return withAnswer(best.passage, { ...prompt, text: promptText }, last, { ...rules, isQuestion });
}

/** A short prompt alone says little, and an answer that only repeats it adds nothing. */
function withAnswer(
  passage: Passage,
  prompt: SpokenPart,
  last: SpokenPart,
  { maxChars, isPast, isQuestion }: PassageRules & { readonly isQuestion: boolean },
): Passage {
  const statement = { text: prompt.text, by: prompt.by, origin: prompt.origin, asked: '' };
  if (passage.by === 'assistant') {
    if (isPast(prompt.text)) return { ...passage, asked: '' };
    return containedShare(passage.text, prompt.text) >= REPEATED ? statement : passage;
  }
  if (passage.by !== 'user' || !(isQuestion || isCleanOrigin(last.origin))) return passage;
  const end = getEnd(last.text, maxChars);
  if (end === '' || isPast(end) || containedShare(end, prompt.text) >= REPEATED) return passage;
  return { text: end, by: 'assistant', origin: last.origin, asked: prompt.text };
}

/**
 * A prompt that is too long to be shown beside it states a problem more often than its solution: what the turn says to
 * it is worth part of the room.
 */
function withOutcome(passage: Passage, parts: readonly SpokenPart[], terms: QueryTerms, rules: PassageRules): Passage {
  if (passage.by !== 'user') return passage;
  const answers = parts.filter(({ by, origin }) => by === 'assistant' && isCleanOrigin(origin));
  const passages = answers.map((part) => ({
    part,
    found: findBest(part.text, terms, { ...rules, maxChars: OUTCOME_CHARS }),
  }));
  const last = answers.at(-1);
  if (last === undefined || last !== parts.findLast(({ by }) => by === 'assistant')) return passage;
  let best = { text: getEnd(last.text, OUTCOME_CHARS), origin: last.origin, score: 0 };
  for (const { part, found } of passages) {
    const score = (found?.coverage ?? 0) + (part === last ? LAST_BONUS : 0);
    if (found !== null && score > best.score) best = { text: found.text, origin: part.origin, score };
  }
  const promptPassage = findBest(passage.text, terms, { ...rules, maxChars: rules.maxChars - OUTCOME_CHARS });
  const { text, origin } = best;
  if (promptPassage === null || text === '' || rules.isPast(text)) return passage;
  if (containedShare(text, promptPassage.text) >= REPEATED) return passage;
  return { text, by: 'assistant', origin: lowestOrigin([origin, passage.origin]), asked: promptPassage.text };
}

function findBest(text: string, terms: QueryTerms, rules: PassageRules) {
  const read = text.slice(0, READ_CHARS);
  const pieces = getPieces(read, rules.maxChars);
  const range = bestRange(pieces, terms, { context: new Set(), text: read, ...rules });
  return range === null ? null : { text: getText(read, pieces, range, rules.maxChars), coverage: range.coverage };
}

export function containedShare(text: string, other: string): number {
  const [own, known] = [new Set(tokenize(text)), new Set(tokenize(other))];
  return own.size === 0 ? 1 : [...own].filter((token) => known.has(token)).length / own.size;
}

function getEnd(text: string, maxChars: number): string {
  const pieces = getPieces(text.slice(-READ_CHARS), maxChars);
  const only = { first: pieces.length - 1, last: pieces.length - 1, coverage: 0 };
  return pieces.length === 0 ? '' : getText(text.slice(-READ_CHARS), pieces, only, maxChars);
}

/**
 * The shortest run of pieces that covers most, the last of several: texts end with what they come to. Terms of the
 * prompt that it answers count half.
 */
function bestRange(
  pieces: readonly Piece[],
  terms: QueryTerms,
  { context, text, maxChars, isPast }: PassageRules & { readonly context: ReadonlySet<string>; readonly text: string },
): Range | null {
  const getWeight = (tokens: ReadonlySet<string>): number => {
    const own = measureCoverage(terms, tokens);
    return context.size === 0 ? own : (own + measureCoverage(terms, new Set([...tokens, ...context]))) / 2;
  };
  let best: Range | null = null;
  for (let first = 0; first < pieces.length; first += 1) {
    const start = pieces[first] as Piece;
    if (measureCoverage(terms, start.tokens) === 0) continue;
    const tokens = new Set<string>();
    let reached = 0;
    for (let last = first; last < pieces.length; last += 1) {
      const end = pieces[last] as Piece;
      if (end.to - start.from > maxChars) break;
      for (const token of end.tokens) if (terms.weights.has(token)) tokens.add(token);
      const coverage = getWeight(tokens);
      if (coverage <= reached) continue;
      reached = coverage;
      if (coverage < (best?.coverage ?? 0) || isPast(text.slice(start.from, end.to))) continue;
      best = { first, last, coverage };
    }
  }
  return best;
}

/** What follows a match answers it more often than what precedes it, so the rest of the room goes there first. */
function getText(text: string, pieces: readonly Piece[], { first, last }: Range, maxChars: number): string {
  let [from, to] = [(pieces[first] as Piece).from, (pieces[last] as Piece).to];
  for (let next = last + 1; next < pieces.length && (pieces[next] as Piece).to - from <= maxChars; next += 1)
    to = (pieces[next] as Piece).to;
  for (let before = first - 1; before >= 0 && to - (pieces[before] as Piece).from <= maxChars; before -= 1)
    from = (pieces[before] as Piece).from;
  return text.slice(from, to).trim();
}

/** Sentences and lines; a longer one is split at words. */
function getPieces(text: string, maxChars: number): Piece[] {
  const ends = [...text.matchAll(PIECE_END)].map((end) => end.index + end[0].length);
  const pieces: Piece[] = [];
  let from = 0;
  const add = (to: number): void => {
    if (to > from) pieces.push({ from, to, tokens: new Set(tokenize(text.slice(from, to))) });
    from = to;
  };
  for (const end of [...ends, text.length]) {
    while (end - from > maxChars) {
      const space = text.lastIndexOf(' ', from + maxChars);
      add(space > from ? space + 1 : from + maxChars);
    }
    add(end);
  }
  return pieces;
}
