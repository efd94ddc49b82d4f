/** What a ranked list is worth. */
export interface Score {
  readonly r5: number;
  readonly r10: number;
  readonly mrr: number;
}

const FIRST_WITHIN = 50;

/** Share of the evidence among the first 5 and 10, and the reciprocal rank of the first of it. */
export function getScore(ranked: readonly string[], evidence: readonly string[]): Score {
  const wanted = new Set(evidence);
  const among = (count: number): number => ranked.slice(0, count).filter((id) => wanted.has(id)).length / wanted.size;
  const first = ranked.slice(0, FIRST_WITHIN).findIndex((id) => wanted.has(id));
  return { r5: among(5), r10: among(10), mrr: first < 0 ? 0 : 1 / (first + 1) };
}

export function getMean(scores: readonly Score[]): Score {
  const mean = (part: keyof Score): number =>
    Number((scores.reduce((sum, score) => sum + score[part], 0) / Math.max(1, scores.length)).toFixed(4));
  return { r5: mean('r5'), r10: mean('r10'), mrr: mean('mrr') };
}
