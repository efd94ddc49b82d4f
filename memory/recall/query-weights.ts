/** The query's telling terms with what each is worth. */
export interface QueryWeights {
  readonly terms: ReadonlyMap<string, number>;
  readonly total: number;
}

/** A long prompt is judged by its rarest terms: nothing covers all of them. */
const MAX_TERMS = 12;
/** A word that memory never saw is more often a paraphrase than the point. */
const UNSEEN_SHARE = 0.5;
/** A token no text holds, to learn what an unseen one weighs. */
export const UNSEEN = '\0';

/** @param idf  of each token and of `UNSEEN`, as `SearchIndex.termWeights` gives it */
export function weighQuery(tokens: readonly string[], idf: ReadonlyMap<string, number>): QueryWeights {
  const unseen = idf.get(UNSEEN) ?? 0;
  const terms = tokens
    .map((token) => [token, idf.get(token) ?? 0] as const)
    .map(([token, weight]) => [token, weight >= unseen ? weight * UNSEEN_SHARE : weight] as const)
    .sort(([, left], [, right]) => right - left)
    .slice(0, MAX_TERMS);
  return { terms: new Map(terms), total: terms.reduce((sum, [, weight]) => sum + weight, 0) };
}

/** Worth of the query's terms that stand in `tokens`. */
export function coveredWorth({ terms }: QueryWeights, tokens: ReadonlySet<string>): number {
  let worth = 0;
  for (const [term, weight] of terms) if (tokens.has(term)) worth += weight;
  return worth;
}
