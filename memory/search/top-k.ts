import type { Hits } from './node-index.ts';

/** Slots and their scores, side by side; more may have room than are there. */
export interface Candidates {
  readonly slots: Uint32Array;
  readonly scores: Float64Array;
}

/**
 * The best of the first `count` candidates, ties by slot, without sorting them all. Leaves the candidates in another
 * order. Numbers pass between functions as places only: a score that is handed over is boxed, and there are thousands.
 */
export function bestOf(candidates: Candidates, count: number, limit: number): Hits {
  const { slots, scores } = candidates;
  const kept = Math.min(count, limit);
  for (let at = (kept >> 1) - 1; at >= 0; at -= 1) sink(candidates, at, kept);
  if (kept > 0) {
    for (let at = kept; at < count; at += 1) {
      if (isWorse(candidates, at, 0)) continue;
      slots[0] = slots[at] as number;
      scores[0] = scores[at] as number;
      sink(candidates, 0, kept);
    }
  }
  // The worst on top goes to the end, and so on.
  for (let end = kept - 1; end > 0; end -= 1) {
    swap(candidates, 0, end);
    sink(candidates, 0, end);
  }
  return { slots: Array.from(slots.subarray(0, kept)), scores: Array.from(scores.subarray(0, kept)) };
}

/** Brings a heap whose worst is on top in order again below one place. */
function sink(heap: Candidates, from: number, count: number): void {
  for (let at = from; ; ) {
    const left = at * 2 + 1;
    if (left >= count) return;
    const child = left + 1 < count && isWorse(heap, left + 1, left) ? left + 1 : left;
    if (!isWorse(heap, child, at)) return;
    swap(heap, child, at);
    at = child;
  }
}

function isWorse({ slots, scores }: Candidates, one: number, other: number): boolean {
  const left = scores[one] as number;
  const right = scores[other] as number;
  return left < right || (left === right && (slots[one] as number) > (slots[other] as number));
}

function swap({ slots, scores }: Candidates, one: number, other: number): void {
  const slot = slots[one] as number;
  const score = scores[one] as number;
  slots[one] = slots[other] as number;
  scores[one] = scores[other] as number;
  slots[other] = slot;
  scores[other] = score;
}
