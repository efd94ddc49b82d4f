import { memoize } from '../../common/map.ts';
import { getQuotations, trimEnd, withoutQuotations } from '../../common/text.ts';
import { isCleanOrigin, lowestOrigin, type Origin } from '../../common/turn.ts';
import type { TurnText } from '../model/turn.ts';
import { TOOL_CHARS } from '../models/prompts/summary.ts';
import { elide, getOwnLimit } from '../models/prompts/transcript.ts';
import { repeatedOrigin } from '../text/repetition.ts';
import { split } from '../text/sentences.ts';
import { uniqueTokens } from '../text/tokenizer.ts';
import { NEGATIVE } from './supersede-rules.ts';

const LEAST_SHARE = 0.6;

/**
 * Origin of a text whose writer saw the turns `shown` and cites `sources` (turn ids). Verbatim user text is the user's.
 * What a few clauses of the user and the assistant say is the assistant's. Otherwise it is the lowest origin of the cited
 * turns if their words support the text, else the lowest of all shown.
 */
export function attributedOrigin(text: string, sources: readonly string[], turns: readonly TurnText[]): Origin {
  const origin = originInTurns(text, sources, turns);
  if (origin === 'user') return origin;
  const named = turns.filter((turn) => sources.includes(turn.turnId));
  const own = isCleanOrigin(origin) || !isSpoken(text, named, turns) ? origin : 'assistant';
  return repeatedOrigin(text, turns, own);
}

/** A sentence of a summary rests on at most this number of clauses. */
const CLAUSES = 4;
/** Limits: of the text that is looked at, and of each text in which its words are looked for. */
const MOST_CHARS = 4_000;
const SAID_CHARS = 20_000;
const CLAUSE_END = /[;:,()[\]—–…\n]+\s*|\s-\s/;
/** Of a claim of a brief. */
const KIND = /^(?:Goal|Done|Found|Stands|Decided|Open|Next): /;
/** What every summary says of a conversation. */
const TELLING = new Set(uniqueTokens('user asks wants needs decides decided chose'));
const DATE = /\(?\b\d{4}-\d{2}-\d{2}\b\)?/g;

interface Clause {
  readonly tokens: ReadonlySet<string>;
  readonly denies: boolean;
}

/**
 * Whether a few clauses that the user or the assistant said in these turns have most words of each sentence, and all
 * figures but the turns' dates. No word may come from a tool or from outside the project alone, and only a clause that
 * denies supports a sentence that denies.
 */
function isSpoken(text: string, named: readonly TurnText[], turns: readonly TurnText[]): boolean {
  if (text.length > MOST_CHARS) return false;
  const clauses = named.flatMap(spokenClauses);
  const days = new Set(named.map(({ atMs }) => new Date(atMs).toISOString().slice(0, 10)));
  const timeless = text.replace(DATE, (date) => (days.has(date.replace(/[()]/g, '')) ? '' : date));
  const sentences = split(timeless.replace(KIND, '').replaceAll('; ', '\n'));
  if (clauses.length === 0 || sentences.length === 0) return false;
  const said = new Set(clauses.flatMap(({ tokens }) => [...tokens]));
  const everSaid = new Set(turns.flatMap(spokenClauses).flatMap(({ tokens }) => [...tokens]));
  const isForeign = (token: string) => !everSaid.has(token) && turns.some((turn) => foreignTokens(turn).has(token));
  return sentences.every((sentence) => {
    const tokens = uniqueTokens(sentence).filter((token) => !TELLING.has(token));
    if (tokens.some((token) => !said.has(token) && (/\d/.test(token) || isForeign(token)))) return false;
    const denies = NEGATIVE.test(sentence);
    const usable = denies ? clauses : clauses.filter((clause) => !clause.denies);
    const chosen = chooseClauses(tokens, usable);
    const isDenied = !denies || chosen.some((clause) => clause.denies);
    const held = tokens.filter((token) => chosen.some((clause) => clause.tokens.has(token)));
    return isDenied && tokens.length > 0 && held.length >= LEAST_SHARE * tokens.length;
  });
}

/** Those that hold the most of what the ones before do not, each two words or all that is left. */
function chooseClauses(tokens: readonly string[], clauses: readonly Clause[]): Clause[] {
  const chosen: Clause[] = [];
  let left = tokens;
  while (chosen.length < CLAUSES && left.length > 0) {
    const count = ({ tokens: own }: Clause): number => left.filter((token) => own.has(token)).length;
    const best = clauses.reduce<Clause | null>((a, b) => (a === null || count(b) > count(a) ? b : a), null);
    if (best === null || count(best) < Math.min(2, left.length)) break;
    chosen.push(best);
    left = left.filter((token) => !best.tokens.has(token));
  }
  return chosen;
}

const spokenClauses = memoize(({ user, userOrigin, parts }: TurnText): readonly Clause[] => {
  const answers = parts.flatMap(({ kind, origin, text, passages = [{ origin, text }] }) =>
    kind === 'assistant' ? passages.filter((own) => isCleanOrigin(own.origin)) : [],
  );
  return [...(userOrigin === undefined ? [withoutQuotations(user)] : []), ...answers.map(({ text }) => text)]
    .flatMap((text) => split(text.slice(0, SAID_CHARS)).flatMap((sentence) => sentence.split(CLAUSE_END)))
    .map((clause) => ({ tokens: new Set(uniqueTokens(clause)), denies: NEGATIVE.test(clause) }))
    .filter(({ tokens }) => tokens.size > 0);
});

/** Of what a summarizer was shown that the user and the assistant did not say. */
const foreignTokens = memoize(({ user, parts }: TurnText): ReadonlySet<string> => {
  const foreign = parts.filter(({ kind, origin }) => kind !== 'assistant' || !isCleanOrigin(origin));
  const texts = foreign.map((part) => elide(part.text, getOwnLimit(part, TOOL_CHARS)));
  return new Set([getQuotations(user), ...texts].flatMap(uniqueTokens));
});

/** Whether a text has a word that only texts from outside the project have. */
export function namesOutside(text: string, turns: readonly TurnText[]): boolean {
  const said = new Set(turns.flatMap(spokenClauses).flatMap(({ tokens }) => [...tokens]));
  const outside = turns.flatMap(({ parts }) => parts.filter(({ origin }) => origin === 'external'));
  const foreign = new Set(outside.flatMap((part) => uniqueTokens(elide(part.text, getOwnLimit(part, TOOL_CHARS)))));
  return uniqueTokens(text).some((token) => foreign.has(token) && !said.has(token));
}

function originInTurns(text: string, sources: readonly string[], turns: readonly TurnText[]): Origin {
  const named = turns.filter((turn) => sources.includes(turn.turnId));
  if (saidByUser(text, named)) return 'user';
  const lowest = lowestOrigin(turns.map((turn) => turn.origin));
  if (named.length < new Set(sources).size || named.length === 0) return lowest;
  const claimed = lowestOrigin(named.map((turn) => turn.origin));
  return claimed === lowest || rests(text, named, turns) ? claimed : lowest;
}

/** Compares whole sentences: a fragment may reverse the meaning. */
function saidByUser(text: string, turns: readonly TurnText[]): boolean {
  if (text.trim() === '') return false;
  const [whole, ...parts] = [text, ...split(text)].map(flat);
  return turns.some((turn) => {
    if (turn.userOrigin !== undefined) return false;
    const userWords = usersWords(turn);
    return userWords.has(whole as string) || (parts.length > 0 && parts.every((part) => userWords.has(part)));
  });
}

const usersWords = memoize(({ user }: TurnText) => new Set([user, ...split(withoutQuotations(user))].map(flat)));

const wholeText = (turn: TurnText): string => [turn.user, ...turn.parts.map((part) => part.text)].join('\n');

function rests(text: string, named: readonly TurnText[], turns: readonly TurnText[]): boolean {
  const words = [...new Set(getWords(text))];
  const ground = new Set(named.flatMap((turn) => getWords(wholeText(turn))));
  const elsewhere = new Set(turns.filter((turn) => !named.includes(turn)).flatMap((turn) => getWords(wholeText(turn))));
  const missing = words.filter((word) => !ground.has(word));
  const stolen = missing.some((word) => /[\d./:@-]/.test(word) && elsewhere.has(word));
  return !stolen && missing.length <= words.length * (1 - LEAST_SHARE);
}

function getWords(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}_][\p{L}\p{N}_./:@-]*/gu) ?? [];
  return words.map((word) => trimEnd(word, './:@-')).filter((word) => word.length > 2);
}

export const flat = (text: string): string => trimEnd(text.toLowerCase().replace(/\s+/g, ' '), '.! ').trim();
