import type { Lane, LaneHits } from '../ports.ts';

/** `score` adds max-normalised scores, `rrf` reciprocal ranks, `comet` 0.6 of reciprocal ranks and 0.4 of likeness. */
export type FusionMode = 'score' | 'rrf' | 'comet';

const RRF_K = 60;
/** CoMeT's, with its share of reciprocal ranks and of the greatest likeness. */
const COMET_K = 5;
const COMET_RANKS = 0.6;
const COMET_LIKENESS = 0.4;
const LANES: readonly Lane[] = ['raw', 'meaning', 'window', 'fact'];

/**
 * Reciprocal-rank fusion of the turns that the lanes found, by row id; 1 is first in every lane. Turns that a fact
 * rests on take its rank.
 *
 * Source: Cormack, Clarke, Büttcher, SIGIR 2009.
 */
export function fuseByRank(hits: LaneHits, mode: Exclude<FusionMode, 'score'>): Map<string, number> {
  const k = mode === 'rrf' ? RRF_K : COMET_K;
  const sums = new Map<string, number>();
  for (const lane of LANES) {
    const seen = new Set<string>();
    for (const [at, { row }] of hits[lane].entries()) {
      const ids = row.kind === 'fact' ? row.sources.map((turn) => `${row.node_id}:${turn}`) : [row.row_id];
      for (const id of ids) {
        if (seen.has(id)) continue;
        seen.add(id);
        sums.set(id, (sums.get(id) ?? 0) + 1 / (k + at + 1));
      }
    }
  }
  const most = LANES.filter((lane) => hits[lane].length > 0).length / (k + 1) || 1;
  const likeness = new Map(hits.meaning.map(({ row, score }) => [row.row_id, Math.max(0, score)]));
  return new Map(
    [...sums].map(([id, sum]) => {
      const ranks = sum / most;
      const score = mode === 'rrf' ? ranks : COMET_RANKS * ranks + COMET_LIKENESS * (likeness.get(id) ?? 0);
      return [id, score];
    }),
  );
}
