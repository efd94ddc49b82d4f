import type { WordRarity } from '../embeddings/static-encoder.ts';
import { type Asked, type AskedTerm, JUDGED_TERMS } from './required-terms.ts';
import { createTermMatcher, type TermMatcher } from './term-matcher.ts';

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
const SURE = 0.85;
/** What stands for a word that the question names must be nearer than `NEAR`. */
const NEAR_NAME = 0.65;
/** Passages of one node that are taken apart, those with most of the question's beginnings of words. */
const WEIGHED = 6;
const ROOT_CHARS = 5;

/** What those passages of a memory give that have anything of what was asked; made for one question. */
export type PassageScale = (passages: readonly string[]) => Evidence[];

export function createPassageScale(asked: Asked, lexicon: WordRarity): PassageScale {
  const matchesIn = createTermMatcher(asked.terms, lexicon);
  const roots = asked.terms.map(({ token, weight }) => [token.slice(0, ROOT_CHARS), weight] as const);
  return (passages) =>
    likelyOf(passages, roots)
      .map((passage) => weighPassage(asked, matchesIn(passage)))
      .filter(({ coverage }) => coverage > 0);
}

function likelyOf(
  passages: readonly string[],
  roots: readonly (readonly [root: string, weight: number])[],
): readonly string[] {
  if (passages.length <= WEIGHED) return passages;
  const rootsIn = (passage: string): number => {
    const lower = passage.toLowerCase();
    return roots.reduce((sum, [root, weight]) => (lower.includes(root) ? sum + weight : sum), 0);
  };
  return passages
    .map((passage) => [passage, rootsIn(passage)] as const)
    .filter(([, worth]) => worth > 0)
    .sort(([, one], [, other]) => other - one)
    .slice(0, WEIGHED)
    .map(([passage]) => passage);
}

/** How a passage fits what was asked. */
function weighPassage({ terms, total, single }: Asked, matches: ReturnType<TermMatcher>): Evidence {
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

function isThere({ exact }: AskedTerm, match: number): boolean {
  return match >= (exact ? SURE : NEAR_NAME);
}
