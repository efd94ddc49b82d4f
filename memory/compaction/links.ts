/** What speaks for a link between two nodes of a project. */
export interface NodeSimilarity {
  /** Cosine of one's summary, asked as a question, and the other's. */
  readonly cosine: number;
  /** Share of their words that both have, each at its idf. */
  readonly words: number;
  /** Share of their content tags that both have. */
  readonly tags: number;
}

/** How an embedder's cosines are read; made by `npm run bench:links`, see docs/LINKS.md. */
export interface LinkThresholds {
  readonly similarity: number;
  readonly words: number;
  readonly tags: number;
  /** Strength from which two nodes are linked. */
  readonly least: number;
}

export interface Linkable {
  readonly nodeId: string;
  readonly strength: number;
}

/** Links of one node, made ones and made by hand. */
export const MOST_LINKS = 10;

/** One for what nobody fitted: words and tags alone. */
const UNFITTED: LinkThresholds = { similarity: 0, words: 1, tags: 0.1, least: 0.3 };
const FITS: Readonly<Record<string, LinkThresholds>> = {
  'static-minilm-128-v1': { similarity: 1, words: 1, tags: 0.1, least: 1.1 },
  'hash-ngram-256-v1': { similarity: 1, words: 1, tags: 0.1, least: 0.875 },
};

/** @param isScript  written in Hangul, kana or Han, which vectors of another scale are made of */
export function linkThresholds(embedderId: string, isScript: boolean): LinkThresholds {
  return isScript ? UNFITTED : (FITS[embedderId] ?? UNFITTED);
}

export function linkStrength(similarity: NodeSimilarity, fit: LinkThresholds): number {
  return fit.similarity * similarity.cosine + fit.words * similarity.words + fit.tags * similarity.tags;
}

/** The strongest that are strong enough, at most ten; ties by id. */
export function chooseLinks(candidates: readonly Linkable[], least: number, most = MOST_LINKS): string[] {
  return candidates
    .filter(({ strength }) => strength >= least)
    .toSorted((one, other) => other.strength - one.strength || (one.nodeId < other.nodeId ? -1 : 1))
    .slice(0, Math.max(0, most))
    .map(({ nodeId }) => nodeId);
}

/** Of distinct content tokens: 0 to 1, the same both ways; words without a weight count for nothing. */
export function sharedWords(
  one: ReadonlySet<string>,
  other: readonly string[],
  weights: ReadonlyMap<string, number>,
): number {
  let both = 0;
  let all = 0;
  for (const token of one) all += weights.get(token) ?? 0;
  for (const token of other) {
    const weight = weights.get(token) ?? 0;
    if (one.has(token)) both += weight;
    else all += weight;
  }
  return all === 0 ? 0 : both / all;
}

/** Jaccard; tags that only say what kind of memory it is (`FLAG:…`) do not count. */
export function sharedTags(one: readonly string[], other: readonly string[]): number {
  const [mine, theirs] = [new Set(one.filter(isContentTag)), new Set(other.filter(isContentTag))];
  const both = [...mine].filter((tag) => theirs.has(tag)).length;
  return both === 0 ? 0 : both / (mine.size + theirs.size - both);
}

function isContentTag(tag: string): boolean {
  return !/^[A-Z]+:/.test(tag);
}
