import type { WordRarity } from '../embeddings/static-encoder.ts';
import { contentTokens } from '../text/keywords.ts';
import { tokenize } from '../text/tokenizer.ts';

/** The query's content terms, weighed by how rare they are in memory and in the language. */
export interface QueryTerms {
  readonly weights: ReadonlyMap<string, number>;
  readonly total: number;
  /** Sum of the inverse document frequencies, and that of a term that only one row contains. */
  readonly information: number;
  readonly single: number;
}

/** A token no text holds, to learn what a term weighs that memory never saw. */
export const UNSEEN = '\0';
/** A long prompt is judged by its rarest terms: no turn contains all of them. */
const MAX_TERMS = 12;
/** Terms that stand everywhere ("run the tests") select nothing, however many of them match. */
const MIN_INFORMATION = 0.5;
/** A turn with less than this share of the best turn's coverage is about something else. */
export const NEAR_BEST = 0.5;

/** Of its weight, what the most common word keeps: a question says it in words of its own. */
const COMMON_SHARE = 0.4;
const RUN = /[\p{L}\p{N}_]+/gu;

/** @param idf  of each token of the query and of `UNSEEN`, as `SearchIndex.termWeights` gives it */
export function weighTerms(query: string, idf: ReadonlyMap<string, number>, rarityOf: WordRarity): QueryTerms {
  // In a small memory a term that it never saw would outweigh all others.
  const single = singleWeight(idf.get(UNSEEN) ?? 0);
  const weightOf = (token: string): number => Math.min(idf.get(token) ?? single, single);
  const words = wordsOf(query);
  const heaviest = contentTokens(query)
    .map((token) => {
      const rarity = rarityOf(words.get(token) ?? token, token);
      return [token, weightOf(token) * (COMMON_SHARE + (1 - COMMON_SHARE) * rarity)] as const;
    })
    .sort(([, one], [, other]) => other - one)
    .slice(0, MAX_TERMS);
  const total = heaviest.reduce((sum, [, weight]) => sum + weight, 0);
  const information = heaviest.reduce((sum, [token]) => sum + weightOf(token), 0);
  return { weights: new Map(heaviest), total, information, single };
}

/** Each token with the word it comes from, where that is the whole word. */
function wordsOf(query: string): Map<string, string> {
  const words = new Map<string, string>();
  for (const [run] of query.matchAll(RUN)) {
    const [only, ...others] = tokenize(run);
    if (only !== undefined && others.length === 0 && !words.has(only)) words.set(only, run.toLowerCase());
  }
  return words;
}

/** Share of the query's weight that the tokens contain, 0 to 1. */
export function coverageIn(terms: QueryTerms, tokens: ReadonlySet<string>): number {
  let covered = 0;
  for (const [term, weight] of terms.weights) if (tokens.has(term)) covered += weight;
  return terms.total === 0 ? 0 : covered / terms.total;
}

export function coverageOf(terms: QueryTerms, text: string): number {
  return coverageIn(terms, new Set(tokenize(text)));
}

/**
 * The absolute threshold: ranking always has a first result, so the best one must contain enough of what the query is
 * about, and enough of it must be specific.
 */
export function isRelevant(coverage: number, { information, single }: QueryTerms, minCoverage: number): boolean {
  return coverage >= minCoverage && coverage * information >= single * MIN_INFORMATION;
}

/** ln(1 + (N + .5) / .5), the weight of an unseen term, gives the row count N. */
function singleWeight(unseen: number): number {
  const rows = Math.max(1, (Math.exp(unseen) - 1) * 0.5 - 0.5);
  return Math.log(1 + (rows - 0.5) / 1.5);
}
