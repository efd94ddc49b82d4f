import { uniqueTokens } from '../text/tokenizer.ts';

/** More terms slow full text down and add little. */
const MAX_TERMS = 48;

/** What full text is asked for: the query's rarest terms. */
export function queryTerms(
  query: string,
  weigh: (tokens: readonly string[]) => ReadonlyMap<string, number>,
): readonly string[] {
  const tokens = uniqueTokens(query);
  if (tokens.length <= MAX_TERMS) return tokens;
  return [...weigh(tokens)]
    .sort(([, left], [, right]) => right - left)
    .slice(0, MAX_TERMS)
    .map(([token]) => token);
}
