import { grown } from './grow-array.ts';
import type { Hits } from './node-index.ts';
import { createVectorTable } from './quantized-vectors.ts';
import { bestOf } from './top-k.ts';

/**
 * Vectors of rows by their slots, compared one by one: all of them, and sooner done than asking the table. Beyond
 * `MOST_NUMBERS` it holds none any more. Held in memory.
 */
export interface VectorBook {
  put(slot: number, vector: Float32Array | null): void;
  remove(slot: number): void;
  /** Whether every row's vector is here. */
  isWhole(): boolean;
  /**
   * Cosines above 0, for each limit of those slots that belong to it.
   *
   * @param groupOf  the place of a slot's limit, -1 for one that is not asked for
   */
  nearest(vector: Float32Array, groupOf: (slot: number) => number, limits: readonly number[]): Hits[];
  clear(): void;
}

/** 40 MB, 156,000 vectors of 128; comparing them takes some milliseconds. */
const MOST_NUMBERS = 20_000_000;

/** @param rows  that it will be given at once */
export function createVectorBook(dimensions: number, rows = 0, mostRows = Number.POSITIVE_INFINITY): VectorBook {
  const most = Math.min(mostRows, Math.floor(MOST_NUMBERS / dimensions));
  /** By slot, plus one; 0 for none. */
  let places = new Uint32Array(1_024);
  /** By place. */
  let slots = new Uint32Array(1_024);
  let count = 0;
  const vectors = createVectorTable(dimensions, rows);
  /** Written anew by each search. */
  let groups = new Int8Array(0);
  let found = { slots: new Uint32Array(0), scores: new Float64Array(0) };
  let whole = rows <= most;

  function empty(): void {
    places.fill(0);
    count = 0;
    vectors.clear();
  }

  return {
    put(slot, vector) {
      if (!whole || vector === null) return;
      if (count === most) {
        whole = false;
        empty();
        return;
      }
      slots = grown(slots, count);
      places = grown(places, slot);
      slots[count] = slot;
      vectors.set(count, unit(vector));
      count += 1;
      places[slot] = count;
    },
    remove(slot) {
      const place = (places[slot] ?? 0) - 1;
      if (place < 0) return;
      count -= 1;
      const moved = slots[count] as number;
      vectors.copy(count, place);
      slots[place] = moved;
      places[moved] = place + 1;
      places[slot] = 0;
    },
    isWhole: () => whole,
    nearest(vector, groupOf, limits) {
      const cosines = vectors.products(unit(vector), 0, count);
      if (groups.length < count) groups = new Int8Array(count * 2);
      for (let place = 0; place < count; place += 1) groups[place] = groupOf(slots[place] as number);
      if (found.slots.length < count) {
        found = { slots: new Uint32Array(count * 2), scores: new Float64Array(count * 2) };
      }
      return limits.map((limit, group) => {
        let fitting = 0;
        for (let place = 0; place < count; place += 1) {
          if (groups[place] !== group || (cosines[place] as number) <= 0) continue;
          found.slots[fitting] = slots[place] as number;
          found.scores[fitting++] = cosines[place] as number;
        }
        return bestOf(found, fitting, limit);
      });
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
