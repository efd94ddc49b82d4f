import { uniqueTokens } from '../text/tokenizer.ts';
import type { QueryWeights } from './query-weights.ts';
import type { Snippet } from './snippet.ts';

/** From this share of the best rank on a later line is as good: what was said last holds. */
const NEAR = 0.85;
/** The same for a line that gives another figure for the same thing. */
const REVISED = 0.45;
const SHARED_TERMS = 2;
const SHARED_WORDS = 3;

/** The line to show of those that each turn offers, oldest first. */
export function chooseRaw<T extends Snippet>(offered: readonly T[], query: QueryWeights): T | null {
  const best = offered.reduce<T | null>((top, each) => (each.rank > (top?.rank ?? 0) ? each : top), null);
  if (best === null) return null;
  const later = offered.slice(offered.indexOf(best) + 1).reverse();
  const holds = (each: T): boolean =>
    each.rank >= best.rank * NEAR || (each.rank >= best.rank * REVISED && revises(each.text, best.text, query));
  return later.find(holds) ?? best;
}

function revises(text: string, former: string, { terms }: QueryWeights): boolean {
  const known = new Set(uniqueTokens(former));
  const tokens = uniqueTokens(text);
  const shared = tokens.filter((token) => known.has(token) && !isFigure(token));
  const figures = tokens.filter(isFigure);
  return (
    figures.some((figure) => !known.has(figure)) &&
    [...known].some(isFigure) &&
    shared.length >= SHARED_WORDS &&
    shared.filter((token) => terms.has(token)).length >= SHARED_TERMS
  );
}

const isFigure = (token: string): boolean => /^\d/.test(token);
