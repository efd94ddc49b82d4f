import { MOST_LINKS } from '../compaction/links.ts';
import type { MergeRule } from './choose-merges.ts';
import type { ClusterRule } from './clusters.ts';

export interface ConsolidationRule extends Omit<MergeRule, 'sparesDrafts'> {
  readonly links: number;
  readonly cluster: ClusterRule;
  /** Least share of a group's pairs that must be near, where no model says that it belongs together. */
  readonly density: number;
}

/** How an embedder's vectors are read in a dream; made by `npm run bench:dream`, see docs/DREAM.md. */
export interface ConsolidationThresholds {
  /** Cosine from which two nodes may say the same. */
  readonly same: number;
  /** See `MergeRule`. */
  readonly words: number;
  /** Strength, as links have it, from which nodes may belong to one group. */
  readonly group: number;
}

const SHARED = { limit: 5, links: MOST_LINKS, cluster: { minSize: 2, maxSize: 8 }, density: 0.5 } as const;

/** One for what nobody fitted: words decide. */
const UNFITTED: ConsolidationThresholds = { same: 0, words: 0.7, group: 0.4 };
const FITS: Readonly<Record<string, ConsolidationThresholds>> = {
  'static-minilm-128-v1': { same: 0.9, words: 0.4, group: 1.2 },
  'hash-ngram-256-v1': { same: 0.85, words: 0.4, group: 1 },
};

/** @param isScript  written in Hangul, kana or Han, which vectors of another scale are made of */
export function consolidationThresholds(embedderId: string, isScript = false): ConsolidationThresholds {
  return isScript ? UNFITTED : (FITS[embedderId] ?? UNFITTED);
}

export function consolidationRule(embedderId: string): ConsolidationRule {
  return { ...SHARED, words: consolidationThresholds(embedderId).words };
}
