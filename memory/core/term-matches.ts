import type { AskedTerm } from './asked.ts';
import type { Lexicon } from './lexicon.ts';
import { runsOf, tokensOf } from './tokens.ts';

/** How well each asked term stands in a passage, 0 to 1, in the terms' order. */
export type TermMatcher = (passage: string) => readonly number[];

/** Two forms of a word with so many letters in common from the start count nearly as one. */
const KIN_CHARS = 6;
const KIN = 0.9;
/** Words this near in meaning stand for each other, less than fully. */
const NEAR = 0.55;
const WORD = /^[a-z]{3,}$/;

/** What one run of letters gives of the asked terms; by their places. */
interface RunMatches {
  readonly same: readonly number[];
  /** Places among the parts of all terms. */
  readonly parts: readonly number[];
  readonly kin: readonly number[];
  /** Of each term, 0 for one that nothing may stand for. */
  readonly likeness: readonly number[] | null;
}

/** For one question: passages of many memories share their words, so what each run gives is remembered. */
export function createTermMatcher(terms: readonly AskedTerm[], lexicon: Lexicon): TermMatcher {
  const parts = terms.flatMap((term, at) => term.parts.map((token) => ({ at, token })));
  const remembered = new Map<string, RunMatches | null>();

  function matchesOf(run: string): RunMatches | null {
    const known = remembered.get(run);
    if (known !== undefined) return known;
    const tokens = tokensOf(run);
    const placesOf = <T>(all: readonly T[], fits: (each: T, token: string) => boolean): number[] =>
      [...all.keys()].filter((at) => tokens.some((token) => fits(all[at] as T, token)));
    const likeness = terms.map((term) => Math.max(0, ...tokens.map((token) => likenessTo(term, token, lexicon))));
    const fresh: RunMatches = {
      same: placesOf(terms, (term, token) => term.token === token),
      parts: placesOf(parts, (part, token) => part.token === token),
      kin: placesOf(terms, (term, token) => isWord(term) && isKin(term.token, token)),
      likeness: likeness.some((each) => each >= NEAR) ? likeness : null,
    };
    const { same, parts: some, kin } = fresh;
    const given = same.length + some.length + kin.length > 0 || fresh.likeness !== null ? fresh : null;
    remembered.set(run, given);
    return given;
  }

  return (passage) => {
    const matches = new Array<number>(terms.length).fill(0);
    const [same, kin, seen] = [new Set<number>(), new Set<number>(), new Set<number>()];
    for (const run of runsOf(passage)) {
      const found = matchesOf(run);
      if (found === null) continue;
      for (const at of found.same) same.add(at);
      for (const at of found.kin) kin.add(at);
      for (const at of found.parts) seen.add(at);
      if (found.likeness === null) continue;
      for (const [at, likeness] of found.likeness.entries()) {
        if (likeness >= NEAR) matches[at] = Math.max(matches[at] as number, likeness);
      }
    }
    for (const at of kin) matches[at] = KIN;
    for (const [at, term] of terms.entries()) {
      const isWhole = (): boolean => parts.every((part, place) => part.at !== at || seen.has(place));
      if (same.has(at) || (term.parts.length > 0 && isWhole())) matches[at] = 1;
    }
    return matches;
  };
}

/** Nothing stands for a name, a figure or a piece of another script. */
function isWord({ token, exact }: AskedTerm): boolean {
  return !exact && WORD.test(token);
}

/** A word that memory uses elsewhere and not here is missing, whatever is near it. */
function likenessTo(term: AskedTerm, token: string, lexicon: Lexicon): number {
  return !term.known && isWord(term) && WORD.test(token) ? lexicon.likeness(term.word, token) : 0;
}

function isKin(one: string, other: string): boolean {
  return Math.min(one.length, other.length) >= KIN_CHARS && (one.startsWith(other) || other.startsWith(one));
}
