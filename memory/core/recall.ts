import type { LaneScore } from '../face.ts';
import type { IndexRow, LaneHit, LaneHits } from '../ports.ts';

export type Lane = keyof LaneHits;

/** How much each lane's best hit counts. */
export type LaneWeights = Readonly<Record<Lane, number>>;

/** Fitted with the hashed vectors on long dialogues; a better embedder deserves more than a quarter. */
export const LANE_WEIGHTS: LaneWeights = { fts: 0.5, raw: 1, summary: 0.25, trigger: 0.1 };

export interface Candidate {
  readonly nodeId: string;
  /** 0 to 1; 1 is best in every lane. */
  readonly score: number;
  readonly lanes: Readonly<Partial<Record<Lane, LaneScore>>>;
  /** Greatest cosine of its rows. */
  readonly similarity: number;
  /** Rows of its turns that were found, best first. */
  readonly turns: readonly IndexRow[];
}

/**
 * Fuses the lanes: each lane's scores are divided by its best, a node takes the best of its rows, lanes add up by
 * weight. Best first; ties by node id.
 */
export function fuse(hits: LaneHits, weights: LaneWeights): Candidate[] {
  const nodes = new Map<string, Draft>();
  for (const lane of Object.keys(weights) as Lane[]) {
    const best = hits[lane][0]?.score ?? 0;
    if (best <= 0) continue;
    for (const [at, hit] of hits[lane].entries()) {
      const draft: Draft = nodes.get(hit.row.node_id) ?? { lanes: {}, similarity: 0, turns: new Map() };
      nodes.set(hit.row.node_id, draft);
      draft.lanes[lane] ??= { rank: at + 1, score: hit.score, share: hit.score / best };
      if (lane === 'summary' || lane === 'trigger') draft.similarity = Math.max(draft.similarity, hit.score);
      if (hit.row.kind === 'turn') addTurn(draft, hit, (weights[lane] * hit.score) / best);
    }
  }
  const full = Object.values(weights).reduce((sum, weight) => sum + weight, 0);
  return [...nodes]
    .map(([nodeId, draft]) => candidateOf(nodeId, draft, weights, full))
    .sort((left, right) => right.score - left.score || (left.nodeId < right.nodeId ? -1 : 1));
}

interface Draft {
  readonly lanes: Partial<Record<Lane, LaneScore & { readonly share: number }>>;
  similarity: number;
  readonly turns: Map<string, { readonly row: IndexRow; readonly score: number }>;
}

function addTurn(draft: Draft, { row }: LaneHit, score: number): void {
  const before = draft.turns.get(row.turn)?.score ?? 0;
  draft.turns.set(row.turn, { row, score: before + score });
}

function candidateOf(nodeId: string, draft: Draft, weights: LaneWeights, full: number): Candidate {
  const lanes: Partial<Record<Lane, LaneScore>> = {};
  let sum = 0;
  for (const [lane, { rank, score, share }] of Object.entries(draft.lanes) as [
    Lane,
    LaneScore & { readonly share: number },
  ][]) {
    lanes[lane] = { rank, score };
    sum += weights[lane] * share;
  }
  const turns = [...draft.turns.values()].sort((left, right) => right.score - left.score).map(({ row }) => row);
  return { nodeId, score: full === 0 ? 0 : sum / full, lanes, similarity: draft.similarity, turns };
}

const NEAR = 0.8;
/** Where one text has such a word more than the other, they do not say the same. */
const TELLING = /\d|^(?:not|no|never|without|don|doesn|isn|instead|nor|none)$/u;

/** Whether one text says what the other says: all its words, few more, and no figure or negation among those. */
export function isNearDuplicate(left: string, right: string): boolean {
  const [fewer, more] = [wordsOf(left), wordsOf(right)].sort((a, b) => a.size - b.size) as [Set<string>, Set<string>];
  if (fewer.size < NEAR * more.size) return false;
  for (const word of fewer) if (!more.has(word)) return false;
  return [...more].every((word) => fewer.has(word) || !TELLING.test(word));
}

function wordsOf(text: string): Set<string> {
  return new Set(
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}_]+/gu) ?? [],
  );
}
