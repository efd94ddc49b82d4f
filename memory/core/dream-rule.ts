import type { ClusterRule } from './clusters.ts';
import type { MergeRule } from './merge-choice.ts';

export interface DreamRule extends Omit<MergeRule, 'sparesStandIns'> {
  /** Likeness from which on nodes belong to one group. */
  readonly group: number;
  /** The same for nodes that share a tag. */
  readonly tagged: number;
  /** Likeness from which on nodes are linked. */
  readonly link: number;
  readonly links: number;
  readonly cluster: ClusterRule;
  /** Least share of a group's pairs that must be near, where no model says that it belongs together. */
  readonly density: number;
}

const SHARED = { most: 5, links: 10, cluster: { least: 2, most: 8 }, density: 0.5 } as const;

/** Set by hand on few examples, not fitted yet; likeness is the cosine of a question and a summary. */
const KNOWN: Readonly<Record<string, Omit<DreamRule, keyof typeof SHARED>>> = {
  'static-minilm-128-v1': { same: 0.72, words: 0.6, group: 0.62, tagged: 0.52, link: 0.55 },
};
/** Of an embedder that is not known little is taken to be alike. */
const STRICT = { same: 0.85, words: 0.7, group: 0.8, tagged: 0.75, link: 0.7 } as const;

/** @param embedder  its id */
export function dreamRule(embedder: string): DreamRule {
  return { ...SHARED, ...(KNOWN[embedder] ?? STRICT) };
}
