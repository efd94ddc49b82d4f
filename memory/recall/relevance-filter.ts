import { tokenize } from '../text/tokenizer.ts';

/** The query's content terms, each with its inverse document frequency. */
export interface QueryTerms {
  readonly weights: ReadonlyMap<string, number>;
  readonly total: number;
  /** Weight of a term that only one row contains. */
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

/** @param idf  of each token and of `UNSEEN`, as `SearchIndex.termWeights` gives it */
export function weighTerms(tokens: readonly string[], idf: ReadonlyMap<string, number>): QueryTerms {
  const unseen = idf.get(UNSEEN) ?? 0;
  const heaviest = tokens
    .map((token) => [token, idf.get(token) ?? unseen] as const)
    .sort(([, one], [, other]) => other - one)
    .slice(0, MAX_TERMS);
  const total = heaviest.reduce((sum, [, weight]) => sum + weight, 0);
  return { weights: new Map(heaviest), total, single: singleWeight(unseen) };
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
export function isRelevant(coverage: number, { total, single }: QueryTerms, minCoverage: number): boolean {
  return coverage >= minCoverage && coverage * total >= single * MIN_INFORMATION;
}

/** ln(1 + (N + .5) / .5), the weight of an unseen term, gives the row count N. */
function singleWeight(unseen: number): number {
  const rows = Math.max(1, (Math.exp(unseen) - 1) * 0.5 - 0.5);
  return Math.log(1 + (rows - 0.5) / 1.5);
}
