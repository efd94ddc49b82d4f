import { findSimilarity, getWordRarity, textVector } from '../embeddings/static-embedder.ts';
import { contentTokens } from '../text/keywords.ts';
import { tokenize } from '../text/tokenizer.ts';

/** A token no text holds, to learn what a term weighs that memory never saw. */
export const UNSEEN = '\0';

/** What the filter goes by; benchmarks change one at a time. */
export const FILTER_RULES = {
  /** A long prompt is judged by its rarest terms: no turn contains all of them. */
  maxTerms: 12,
  /** Terms that stand everywhere ("run the tests") select nothing, however many of them match. */
  minInformation: 0.5,
  /** Of its weight, what the most common word keeps: a question says it in words of its own. */
  commonShare: 0.4,
  /** A turn with less than this share of the best turn's coverage is about something else. */
  nearBest: 0.5,
  /** A second turn of a memory is shown if it covers this share of what the best one covers. */
  secondShare: 0.75,
  /** A linked memory surfaces if it names this share of the query. */
  linkCoverage: 0.2,
  /** No memory is shown where none of this many best ones passes the threshold. */
  deciding: 4,
  /** The similarity of a text and the query at which the least coverage is what is configured. */
  usualSimilarity: 0.28,
  /** The share of it by which a text needs more for each 1 of similarity that it has less, and less where it has more. */
  similarityWeight: 1.8,
};
export type FilterRules = Readonly<typeof FILTER_RULES>;

const RUN = /[\p{L}\p{N}_]+/gu;

/** The query's content terms, weighed by how rare they are in memory and in the language. */
export type QueryTerms = ReturnType<typeof weighTerms>;

/**
 * @param idf   of each token of the query and of `UNSEEN`, as `SearchIndex.termWeights` gives it
 * @param date  the query without the words of its date, which turns of that date seldom have, and how rare it is
 */
export function weighTerms(
  query: string,
  idf: ReadonlyMap<string, number>,
  { maxTerms, minInformation, commonShare }: FilterRules = FILTER_RULES,
  date: { readonly rest: string; readonly rarity: number } | null = null,
) {
  // In a small memory a term that it never saw would outweigh all others.
  // From ln(1 + (N + .5) / .5), the weight of an unseen term.
  const rows = Math.max(1, (Math.exp(idf.get(UNSEEN) ?? 0) - 1) * 0.5 - 0.5);
  const single = Math.log(1 + (rows - 0.5) / 1.5);
  const getWeight = (token: string): number => Math.min(idf.get(token) ?? single, single);
  const words = getWords(query);
  const heaviest = contentTokens(date?.rest ?? query)
    .map((token) => {
      const rarity = getWordRarity(words.get(token) ?? token, token);
      return [token, getWeight(token) * (commonShare + (1 - commonShare) * rarity)] as const;
    })
    .sort(([, one], [, other]) => other - one)
    .slice(0, maxTerms);
  return {
    weights: new Map(heaviest),
    total: heaviest.reduce((sum, [, weight]) => sum + weight, 0),
    information: heaviest.reduce((sum, [token]) => sum + getWeight(token), 0),
    /** What of it a relevant turn must contain. */
    minInformation: single * minInformation,
    /** What a turn of the named date has in addition; 0 where none is named. */
    date: Math.min(date?.rarity ?? 0, single),
    vector: textVector(query),
  };
}

/** Each token with the word it comes from, where that is the whole word. */
function getWords(query: string): Map<string, string> {
  const words = new Map<string, string>();
  for (const [run] of query.matchAll(RUN)) {
    const [only, ...others] = tokenize(run);
    if (only !== undefined && others.length === 0 && !words.has(only)) words.set(only, run.toLowerCase());
  }
  return words;
}

/**
 * Share of the query's weight that the tokens contain, 0 to 1.
 * @param agreement  with the date that the query names, 0 to 1
 */
export function measureCoverage(
  { weights, total, date }: QueryTerms,
  tokens: Pick<ReadonlySet<string>, 'has'>,
  agreement = 0,
): number {
  const dated = date * agreement;
  let covered = dated;
  for (const [term, weight] of weights) if (tokens.has(term)) covered += weight;
  return covered === 0 ? 0 : covered / (total + dated);
}

export function computeCoverage(terms: QueryTerms, text: string, agreement = 0): number {
  return measureCoverage(terms, new Set(tokenize(text)), agreement);
}

/**
 * The coverage that suffices: less for a text that is near the query.
 * @param vector  of the text, as `textVector` gives it
 */
export function leastCoverage(
  minCoverage: number,
  terms: Pick<QueryTerms, 'vector'>,
  vector: Float32Array | null,
  { usualSimilarity, similarityWeight }: FilterRules = FILTER_RULES,
): number {
  const similarity = findSimilarity(terms.vector, vector) ?? usualSimilarity;
  return minCoverage * (1 + similarityWeight * (usualSimilarity - similarity));
}

/** The absolute threshold: the best result must contain enough of the query, and enough of it that is specific. */
export function isRelevant(
  coverage: number,
  { information, minInformation, date }: QueryTerms,
  minCoverage: number,
  agreement = 0,
): boolean {
  return coverage >= minCoverage && coverage * (information + date * agreement) >= minInformation;
}
