import { tokenize } from './tokens.ts';

/** The query's telling terms with what each is worth. */
export interface QueryWeights {
  readonly terms: ReadonlyMap<string, number>;
  readonly total: number;
  /** What a term is worth that stands in one row only. */
  readonly single: number;
}

export interface GateRules {
  /** Least share of the query's worth that a memory must cover. */
  readonly minCoverage: number;
  /** Least cosine where coverage is in doubt. */
  readonly minSimilarity: number;
}

export interface Evidence {
  /** How many of the query's terms stand in the memory, and how many it has. */
  readonly terms: number;
  readonly asked: number;
  /** Share of the query's worth that stands in the memory, 0 to 1. */
  readonly coverage: number;
  /** The same worth, counted in terms that stand in one row only. */
  readonly information: number;
  readonly similarity: number;
}

/** A long prompt is judged by its rarest terms: nothing covers all of them. */
const MAX_TERMS = 12;
/** A word that memory never saw is more often a paraphrase than the point. */
const UNSEEN_SHARE = 0.5;
/** Below this share of `minCoverage` no similarity helps. */
const DOUBT_SHARE = 0.6;
/** Common words alone ("run the tests") say nothing, however many of them agree. */
const MIN_INFORMATION = 0.75;
/** Where most of what was asked is there, one telling word is the point, in however many turns of its topic it stands. */
const MIN_INFORMATION_COVERED = 0.5;
/** One word of many that agrees by chance must be most of what was asked. */
const ASKED_MANY = 3;
const LONE_TERM_COVERAGE = 0.6;
/** A token no text holds, to learn what an unseen one weighs. */
export const UNSEEN = '\0';

/** @param idf  of each token and of `UNSEEN`, as `NodeIndex.termWeights` gives it */
export function weighQuery(tokens: readonly string[], idf: ReadonlyMap<string, number>): QueryWeights {
  const unseen = idf.get(UNSEEN) ?? 0;
  // ln(1 + (N + .5) / .5) solved for N gives the row count, and from it the worth of a single row's term.
  const rows = Math.max(1, (Math.exp(unseen) - 1) * 0.5 - 0.5);
  const single = Math.log(1 + (rows - 0.5) / 1.5);
  const terms = tokens
    .map((token) => [token, idf.get(token) ?? 0] as const)
    .map(([token, weight]) => [token, weight >= unseen ? weight * UNSEEN_SHARE : weight] as const)
    .sort(([, left], [, right]) => right - left)
    .slice(0, MAX_TERMS);
  return { terms: new Map(terms), total: terms.reduce((sum, [, weight]) => sum + weight, 0), single };
}

/** Worth of the query's terms that stand in `tokens`. */
export function coveredWorth({ terms }: QueryWeights, tokens: ReadonlySet<string>): number {
  let worth = 0;
  for (const [term, weight] of terms) if (tokens.has(term)) worth += weight;
  return worth;
}

export function weighEvidence(query: QueryWeights, texts: readonly string[], similarity: number): Evidence {
  const tokens = new Set(texts.flatMap((text) => tokenize(text)));
  const worth = coveredWorth(query, tokens);
  return {
    terms: [...query.terms.keys()].filter((term) => tokens.has(term)).length,
    asked: query.terms.size,
    coverage: query.total === 0 ? 0 : worth / query.total,
    information: query.single === 0 ? 0 : worth / query.single,
    similarity,
  };
}

/**
 * The absolute gate: ranking always has a winner, so whether anything fits at all is decided here.
 *
 * @param isLinked  a memory that passed links to it: that settles a doubt as likeness does
 */
export function passesGate(evidence: Evidence, rules: GateRules, isLinked = false): boolean {
  const { terms, asked, coverage, information, similarity } = evidence;
  const covered = asked < ASKED_MANY && coverage >= LONE_TERM_COVERAGE;
  if (information < (covered ? MIN_INFORMATION_COVERED : MIN_INFORMATION)) return false;
  if (terms < 2 && asked >= ASKED_MANY && coverage < LONE_TERM_COVERAGE) return false;
  if (coverage >= rules.minCoverage) return true;
  return coverage >= rules.minCoverage * DOUBT_SHARE && (isLinked || similarity >= rules.minSimilarity);
}
