import type { Found, Lane } from './node-index.ts';

/** `score` adds max-normalised scores, `rrf` reciprocal ranks, `comet` 0.6 of reciprocal ranks and 0.4 of likeness. */
export type FusionMode = 'score' | 'rrf' | 'comet';

const RRF_K = 60;
/** CoMeT's, with its share of reciprocal ranks and of the greatest likeness. */
const COMET_K = 5;
const COMET_RANKS = 0.6;
const COMET_LIKENESS = 0.4;
const LANES: readonly Lane[] = ['raw', 'meaning', 'window', 'fact'];

/**
 * Reciprocal-rank fusion of the turns that the lanes found, by `turnKey`; 1 is first in every lane. Turns that a fact
 * rests on take its rank.
 *
 * Source: Cormack, Clarke, Büttcher, SIGIR 2009.
 */
export function fuseByRank({ lanes, rows }: Found, mode: Exclude<FusionMode, 'score'>): Map<number, number> {
  const k = mode === 'rrf' ? RRF_K : COMET_K;
  const sums = new Map<number, number>();
  const keysOf = (slot: number): number[] => {
    const keys: number[] = [];
    for (let nth = 0, turn = rows.sourceOf(slot, 0); turn !== 0; turn = rows.sourceOf(slot, ++nth)) {
      keys.push(turnKey(rows.nodeOf(slot), turn));
    }
    return keys.length > 0 ? keys : [turnKey(rows.nodeOf(slot), rows.turnOf(slot))];
  };
  for (const lane of LANES) {
    const seen = new Set<number>();
    for (const [at, slot] of lanes[lane].slots.entries()) {
      for (const key of keysOf(slot)) {
        if (seen.has(key)) continue;
        seen.add(key);
        sums.set(key, (sums.get(key) ?? 0) + 1 / (k + at + 1));
      }
    }
  }
  const most = LANES.filter((lane) => lanes[lane].slots.length > 0).length / (k + 1) || 1;
  const { slots, scores } = lanes.meaning;
  const likeness = new Map(
    slots.map((slot, at) => [turnKey(rows.nodeOf(slot), rows.turnOf(slot)), Math.max(0, scores[at] as number)]),
  );
  return new Map(
    [...sums].map(([key, sum]) => {
      const ranks = sum / most;
      const score = mode === 'rrf' ? ranks : COMET_RANKS * ranks + COMET_LIKENESS * (likeness.get(key) ?? 0);
      return [key, score];
    }),
  );
}

/** One number for a turn of a node. */
export function turnKey(node: number, turn: number): number {
  return node * 2 ** 26 + turn;
}
