import { type Asked, type AskedTerm, JUDGED_TERMS } from './asked.ts';
import type { Lexicon } from './lexicon.ts';
import { tokenize } from './tokens.ts';

export interface GateRules {
  /** Least share of the question's worth that one passage must cover. */
  readonly minCoverage: number;
}

export interface Evidence {
  /** Share of the question's worth that stands in the passage, 0 to 1. */
  readonly coverage: number;
  /** The same worth, counted in terms that stand in one row only. */
  readonly information: number;
  /** What the question names stands in the passage. */
  readonly named: boolean;
  /** The two known terms that weigh most stand in it: the thing, and what of it is asked. */
  readonly both: boolean;
}

/** Of `minCoverage`, what is enough where the two heaviest terms agree, or where a memory that passed links here. */
const DOUBT_SHARE = 0.74;
/** Common words alone ("run the tests") say nothing, however many of them agree. */
const MIN_INFORMATION = 0.5;
/** Known names of a long prompt that must stand in a passage; of a question all names. */
const NAMES_OF_MANY = 2;
/** Two forms of a word with so many letters in common from the start count nearly as one. */
const KIN_CHARS = 6;
const KIN = 0.9;
const SURE = 0.85;
/** Words this near in meaning stand for each other, less than fully. */
const NEAR = 0.55;
/** The same where the word is what the question names. */
const NEAR_NAME = 0.65;
const WORD = /^[a-z]{3,}$/;
/** Passages of one node that are taken apart, those with most of the question's beginnings of words. */
const WEIGHED = 6;
const ROOT_CHARS = 5;

/** What those passages give that have anything of what was asked. */
export function weighPassages(asked: Asked, passages: readonly string[], lexicon: Lexicon): Evidence[] {
  const roots = asked.terms.map(({ token, weight }) => [token.slice(0, ROOT_CHARS), weight] as const);
  const rootsIn = (passage: string): number => {
    const lower = passage.toLowerCase();
    return roots.reduce((sum, [root, weight]) => (lower.includes(root) ? sum + weight : sum), 0);
  };
  const likely =
    passages.length <= WEIGHED
      ? passages
      : passages
          .map((passage) => [passage, rootsIn(passage)] as const)
          .filter(([, worth]) => worth > 0)
          .sort(([, one], [, other]) => other - one)
          .slice(0, WEIGHED)
          .map(([passage]) => passage);
  return likely.map((passage) => weighPassage(asked, passage, lexicon)).filter(({ coverage }) => coverage > 0);
}

/** How a passage fits what was asked. A word that memory uses elsewhere and not here is missing, whatever is near it. */
function weighPassage({ terms, total, single }: Asked, passage: string, lexicon: Lexicon): Evidence {
  const tokens = new Set(tokenize(passage));
  const matches = terms.map((term) => matchOf(term, tokens, lexicon));
  const sum = (worth: (term: AskedTerm) => number): number =>
    terms.reduce((all, term, at) => all + (matches[at] as number) * worth(term), 0);
  const isLong = terms.length > JUDGED_TERMS;
  const names = terms.flatMap((term, at) =>
    term.named && (term.known || !isLong) ? [isThere(term, matches[at] as number)] : [],
  );
  const needed = isLong ? Math.min(names.length, NAMES_OF_MANY) : names.length;
  const heaviest = matches.filter((_, at) => terms[at]?.known === true).slice(0, 2);
  return {
    coverage: total === 0 ? 0 : Math.min(1, sum(({ weight }) => weight) / total),
    information: single === 0 ? 0 : sum(({ idf }) => idf) / single,
    named: names.filter(Boolean).length >= needed,
    both: heaviest.length > 1 && heaviest.every((match) => match >= SURE),
  };
}

/**
 * The absolute gate: ranking always has a winner, so whether anything fits at all is decided here, for each passage by
 * itself: what is asked must stand in one place.
 *
 * @param isLinked  a memory that passed links to it: that settles a doubt
 */
export function passesGate(evidence: Evidence, { minCoverage }: GateRules, isLinked = false): boolean {
  const { coverage, information, named, both } = evidence;
  if (!named || information < MIN_INFORMATION) return false;
  return coverage >= (both || isLinked ? minCoverage * DOUBT_SHARE : minCoverage);
}

function matchOf(
  { token, word, parts, known, exact }: AskedTerm,
  tokens: ReadonlySet<string>,
  lexicon: Lexicon,
): number {
  if (tokens.has(token) || (parts.length > 0 && parts.every((part) => tokens.has(part)))) return 1;
  if (exact || !WORD.test(token)) return 0;
  let best = 0;
  for (const other of tokens) {
    if (isKin(token, other)) return KIN;
    if (!known && WORD.test(other)) best = Math.max(best, lexicon.likeness(word, other));
  }
  return best >= NEAR ? best : 0;
}

function isThere({ exact }: AskedTerm, match: number): boolean {
  return match >= (exact ? SURE : NEAR_NAME);
}

function isKin(one: string, other: string): boolean {
  return Math.min(one.length, other.length) >= KIN_CHARS && (one.startsWith(other) || other.startsWith(one));
}
