import type { WordRarity } from '../embeddings/static-encoder.ts';
import { contentTokens } from '../text/keywords.ts';
import { hasPairedScript, tokenize } from '../text/tokenizer.ts';
import { UNSEEN } from './query-weights.ts';
import { subjectTokens } from './subject.ts';

/** A term of a question, and what of it a memory must hold. */
export interface AskedTerm {
  readonly token: string;
  /** As it was written, lowercased. */
  readonly word: string;
  /** Tokens that together say the same, of an identifier; empty where there are none. */
  readonly parts: readonly string[];
  /** It stands where the question is asked. */
  readonly known: boolean;
  readonly weight: number;
  readonly idf: number;
  /** It names the thing that is asked about, so that nothing stands for it. */
  readonly named: boolean;
  /** An identifier, figure or proper noun. */
  readonly exact: boolean;
}

export interface Asked {
  /** Those that weigh most first. */
  readonly terms: readonly AskedTerm[];
  /** What covers everything weighs. */
  readonly total: number;
  /** What a term weighs that stands in one row only. */
  readonly single: number;
}

const MAX_TERMS = 12;
/** Only this many terms of a long prompt are required, since no text covers all of them. */
export const JUDGED_TERMS = 6;
/** Of its idf, what the commonest word keeps: where everybody uses it, it tells less than its idf says. */
const KNOWN_LEAST = 0.4;
/** A common word that memory never saw is more often a paraphrase than the point; a rare one is a name. */
const UNSEEN_SHARE = 0.5;
const UNSEEN_LEAST = 0.2;
const NAME_RARITY = 0.75;
/** A name weighs nearly as much as what weighs most. */
const NAME_SHARE = 0.75;
/** What a question is about must be there too, unless it tells next to nothing: who speaks in every other turn. */
const SUBJECT_SHARE = 0.5;
/** Bigrams of a script without spaces are no names. */
const PAIR_RARITY = 0.5;
const RUN = /[\p{L}\p{N}_]+/gu;
const EXACT = /\d|_|\p{Ll}\p{Lu}/u;
const PROPER = /(?<=[\p{L}\p{N},:]\s)\p{Lu}[\p{L}\p{N}]*/gu;
const FRAMES =
  /\bhow (?:long|many|much|often|far|big|large|wide|fast|old|high)\b|\b(?:what|which) (?:time|kind|sort|type)\b|\b(?:called|named)\b/gi;

/** @param idf  of each token and of `UNSEEN`, as `SearchIndex.termWeights` gives it */
export function weighAsked(query: string, idf: ReadonlyMap<string, number>, lexicon: WordRarity): Asked {
  const unseen = idf.get(UNSEEN) ?? 0;
  const bare = withoutFrames(query);
  const content = new Set(contentTokens(bare));
  const proper = new Set([...bare.matchAll(PROPER)].flatMap(([word]) => tokenize(word)));
  const drafts = new Map<string, Omit<AskedTerm, 'named'> & { readonly rarity: number }>();
  for (const [run] of bare.matchAll(RUN)) {
    const tokens = tokenize(run);
    const pairs = hasPairedScript(run);
    for (const [at, token] of tokens.entries()) {
      if (drafts.has(token) || !content.has(token)) continue;
      const parts = at === 0 && !pairs ? tokens.slice(1) : [];
      const word = tokens.length === 1 ? run.toLowerCase() : token;
      const exact = !pairs && (EXACT.test(run) || proper.has(token));
      const rarity = pairs ? PAIR_RARITY : exact ? 1 : lexicon.rarity(word, token);
      const worth = idf.get(token) ?? unseen;
      const known = worth < unseen;
      const share = known
        ? KNOWN_LEAST + (1 - KNOWN_LEAST) * rarity
        : UNSEEN_SHARE * (UNSEEN_LEAST + (1 - UNSEEN_LEAST) * rarity ** 2);
      drafts.set(token, { token, word, parts, known, weight: worth * share, idf: worth, exact, rarity });
    }
  }
  const heaviest = [...drafts.values()].sort((one, other) => other.weight - one.weight).slice(0, MAX_TERMS);
  const top = heaviest[0]?.weight ?? 0;
  const subject = heaviest.length > JUDGED_TERMS || hasPairedScript(query) ? [] : subjectTokens(query);
  const terms = heaviest.map(({ rarity, ...term }) => {
    const isName = rarity >= NAME_RARITY && term.weight >= top * NAME_SHARE;
    const isSubject = subject.includes(term.token) && term.weight >= top * SUBJECT_SHARE;
    return { ...term, named: isName || isSubject };
  });
  const total = terms.slice(0, JUDGED_TERMS).reduce((sum, { weight }) => sum + weight, 0);
  return { terms, total, single: singleWorth(unseen) };
}

/** Words that only ask: "how long", "what is it called". */
function withoutFrames(query: string): string {
  const bare = query.replace(FRAMES, ' ');
  return contentTokens(bare).length > 0 ? bare : query;
}

/** ln(1 + (N + .5) / .5) solved for N gives the row count, and from it the worth of a single row's term. */
function singleWorth(unseen: number): number {
  const rows = Math.max(1, (Math.exp(unseen) - 1) * 0.5 - 0.5);
  return Math.log(1 + (rows - 0.5) / 1.5);
}
