import type { Hit, Lane } from '../search-index.ts';

/** CoMeT's parameters: `rrf_k`, `fusion_alpha` (summary against trigger), `raw_search_weight`. */
export interface CometRules {
  readonly rrfK: number;
  readonly alpha: number;
  readonly rawWeight: number;
}

const COMET_RANKS = 0.6;
const COMET_SIMILARITY = 0.4;

/**
 * Reciprocal-rank fusion; 1 is first in every lane that found anything.
 *
 * Source: Cormack, Clarke, Büttcher, SIGIR 2009.
 */
export function fuseByRank(turns: readonly Hit[], lanes: readonly Lane[], k: number): number[] {
  const answering = lanes.filter((lane) => turns.some((turn) => turn.lanes[lane] !== undefined));
  const most = answering.length / (k + 1) || 1;
  return turns.map((turn) => lanes.reduce((sum, lane) => sum + reciprocalRank(turn, lane, k), 0) / most);
}

/** Ranks of what a node says (summary), of when it applies (trigger) and of the turn itself; and the greatest cosine. */
export function fuseAsComet(
  hits: readonly Hit[],
  turns: readonly Hit[],
  { rrfK, alpha, rawWeight }: CometRules,
): number[] {
  const nodes = new Map(hits.filter(({ turnId }) => turnId === null).map((hit) => [hit.nodeId, hit]));
  const most = (1 + rawWeight) / (rrfK + 1);
  return turns.map((turn) => {
    const node = nodes.get(turn.nodeId);
    const ranks =
      alpha * reciprocalRank(node, 'summary', rrfK) +
      (1 - alpha) * reciprocalRank(node, 'trigger', rrfK) +
      rawWeight * reciprocalRank(turn, 'raw', rrfK);
    const similarity = Math.max(0, turn.lanes.meaning?.score ?? 0, node?.lanes.summary?.score ?? 0);
    return (COMET_RANKS * ranks) / most + COMET_SIMILARITY * similarity;
  });
}

function reciprocalRank(hit: Hit | undefined, lane: Lane, k: number): number {
  const rank = hit?.lanes[lane]?.rank;
  return rank === undefined ? 0 : 1 / (k + rank);
}
