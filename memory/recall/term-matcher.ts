import type { WordRarity } from '../embeddings/static-encoder.ts';
import { runsOf, tokensOf } from '../text/tokenizer.ts';
import type { AskedTerm } from './required-terms.ts';

/** How well each asked term stands in a passage, 0 to 1, in the terms' order. */
export type TermMatcher = (passage: string) => readonly number[];

/** Length of a common prefix from which two word forms count as nearly the same. */
const KIN_CHARS = 6;
const KIN = 0.9;
/** Words this near in meaning stand for each other, less than fully. */
const NEAR = 0.55;
const WORD = /^[a-z]{3,}$/;

/** For one question: passages of many memories share their words, so what each run gives is remembered. */
export function createTermMatcher(terms: readonly AskedTerm[], lexicon: WordRarity): TermMatcher {
  const parts = terms.flatMap((term, at) => term.parts.map((token) => ({ at, token })));
  const remembered = new Map<string, RunMatches | null>();

  /** Most runs give nothing, and nothing is made for them. */
  function matchesOf(run: string): RunMatches | null {
    let found: RunMatches | null = null;
    for (const token of tokensOf(run)) {
      for (let at = 0; at < terms.length; at += 1) {
        const term = terms[at] as AskedTerm;
        const isSame = token === term.token;
        const isOther = !isSame && isWord(term) && isKin(term.token, token);
        const likeness = isSame || isOther ? 0 : likenessTo(term, token, lexicon);
        if (!isSame && !isOther && likeness < NEAR) continue;
        found ??= noMatches();
        if (isSame) found.same.push(at);
        else if (isOther) found.kin.push(at);
        else found.near.push([at, likeness]);
      }
      for (let at = 0; at < parts.length; at += 1) {
        if (parts[at]?.token !== token) continue;
        found ??= noMatches();
        found.parts.push(at);
      }
    }
    return found;
  }

  function known(run: string): RunMatches | null {
    let found = remembered.get(run);
    if (found === undefined) {
      found = matchesOf(run);
      remembered.set(run, found);
    }
    return found;
  }

  return (passage) => {
    const matches = new Array<number>(terms.length).fill(0);
    const [same, kin, seen] = [new Set<number>(), new Set<number>(), new Set<number>()];
    for (const run of runsOf(passage)) {
      const found = known(run);
      if (found === null) continue;
      for (const at of found.same) same.add(at);
      for (const at of found.kin) kin.add(at);
      for (const at of found.parts) seen.add(at);
      for (const [at, likeness] of found.near) matches[at] = Math.max(matches[at] as number, likeness);
    }
    for (const at of kin) matches[at] = KIN;
    for (const [at, term] of terms.entries()) {
      const isWhole = (): boolean => parts.every((part, place) => part.at !== at || seen.has(place));
      if (same.has(at) || (term.parts.length > 0 && isWhole())) matches[at] = 1;
    }
    return matches;
  };
}

/** What one run of letters gives of the asked terms; each a list of places. */
interface RunMatches {
  /** Among the terms: it is there as it is, or in another form. */
  readonly same: number[];
  readonly kin: number[];
  /** Among the parts of all terms. */
  readonly parts: number[];
  /** Terms that it stands for by its meaning, and how nearly. */
  readonly near: [at: number, likeness: number][];
}

function noMatches(): RunMatches {
  return { same: [], kin: [], parts: [], near: [] };
}

/** Nothing stands for a name, a figure or a piece of another script. */
function isWord({ token, exact }: AskedTerm): boolean {
  return !exact && WORD.test(token);
}

/** A word that memory uses elsewhere and not here is missing, whatever is near it. */
function likenessTo(term: AskedTerm, token: string, lexicon: WordRarity): number {
  return !term.known && isWord(term) && WORD.test(token) ? lexicon.likeness(term.word, token) : 0;
}

function isKin(one: string, other: string): boolean {
  return Math.min(one.length, other.length) >= KIN_CHARS && (one.startsWith(other) || other.startsWith(one));
}
