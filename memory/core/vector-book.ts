import { createBest } from './best.ts';
import { products } from './products.ts';
import type { FoundSlot } from './word-index.ts';

/**
 * Vectors of few rows by their slots, compared one by one: exact, and sooner done than asking the table. Beyond
 * `MOST_NUMBERS` it holds none any more. Held in memory.
 */
export interface VectorBook {
  put(slot: number, vector: Float32Array | null): void;
  remove(slot: number): void;
  /** Whether every row's vector is here. */
  isWhole(): boolean;
  /** Cosines above 0, best first within a group: of each at most as many as `limits` says, of others none. */
  nearest(
    vector: Float32Array,
    groupOf: (slot: number) => string | null,
    limits: ReadonlyMap<string, number>,
  ): FoundSlot[];
  clear(): void;
}

/** 10 MB; comparing them takes two to three milliseconds. */
const MOST_NUMBERS = 2_560_000;
const FIRST_ROWS = 256;

/** @param rows  that it will be given at once */
export function createVectorBook(dimensions: number, rows = 0, mostRows = Number.POSITIVE_INFINITY): VectorBook {
  const most = Math.min(mostRows, Math.floor(MOST_NUMBERS / dimensions));
  const places = new Map<number, number>();
  /** By place. */
  const slots: number[] = [];
  let vectors = new Float32Array(0);
  let whole = rows <= most;

  function empty(): void {
    places.clear();
    slots.length = 0;
    vectors = new Float32Array(0);
  }

  return {
    put(slot, vector) {
      if (!whole || vector === null) return;
      if (slots.length === most) {
        whole = false;
        empty();
        return;
      }
      const place = slots.push(slot) - 1;
      places.set(slot, place);
      if ((place + 1) * dimensions > vectors.length) {
        const larger = new Float32Array(Math.min(most, Math.max(FIRST_ROWS, place * 2)) * dimensions);
        larger.set(vectors);
        vectors = larger;
      }
      vectors.set(unit(vector), place * dimensions);
    },
    remove(slot) {
      const place = places.get(slot);
      if (place === undefined) return;
      const last = slots.length - 1;
      const moved = slots[last] as number;
      vectors.copyWithin(place * dimensions, last * dimensions, (last + 1) * dimensions);
      slots[place] = moved;
      places.set(moved, place);
      slots.length = last;
      places.delete(slot);
    },
    isWhole: () => whole,
    nearest(vector, groupOf, limits) {
      const best = new Map([...limits].map(([group, limit]) => [group, createBest(limit)]));
      const scores = products(unit(vector), vectors, { from: 0, to: slots.length });
      let least = 0;
      for (let place = 0; place < slots.length; place += 1) {
        const score = scores[place] as number;
        if (score <= least) continue;
        const slot = slots[place] as number;
        const found = best.get(groupOf(slot) ?? '');
        if (found === undefined || score < found.least()) continue;
        found.add(slot, score);
        least = found.least();
        for (const each of best.values()) least = Math.min(least, each.least());
      }
      return [...best.values()].flatMap((each) => each.sorted());
    },
    clear() {
      empty();
      whole = true;
    },
  };
}

function unit(vector: Float32Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return length === 0 || Math.abs(length - 1) < 1e-6 ? vector : vector.map((value) => value / length);
}
