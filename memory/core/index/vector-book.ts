import type { Hits } from '../../ports/node-index.ts';
import { bestOf } from './best.ts';
import { createVectorTable } from './vector-table.ts';

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
  const places = new Map<number, number>();
  /** By place. */
  const slots: number[] = [];
  const vectors = createVectorTable(dimensions, rows);
  /** Written anew by each search. */
  let groups = new Int8Array(0);
  let found = { slots: new Uint32Array(0), scores: new Float64Array(0) };
  let whole = rows <= most;

  function empty(): void {
    places.clear();
    slots.length = 0;
    vectors.clear();
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
      vectors.set(place, unit(vector));
    },
    remove(slot) {
      const place = places.get(slot);
      if (place === undefined) return;
      const last = slots.length - 1;
      const moved = slots[last] as number;
      vectors.copy(last, place);
      slots[place] = moved;
      places.set(moved, place);
      slots.length = last;
      places.delete(slot);
    },
    isWhole: () => whole,
    nearest(vector, groupOf, limits) {
      const count = slots.length;
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
