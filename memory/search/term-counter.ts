/** Counts by small whole numbers, few of many: an open-addressed table in two typed arrays. */
export interface TermCounter {
  get(id: number): number;
  /** `step` may be negative; a count never falls below zero. */
  add(id: number, step: number): void;
}

const FIRST_SLOTS = 64;
const FULL = 0.75;

export function createTermCounter(): TermCounter {
  /** Each id plus one; 0 is a free slot. */
  let keys = new Uint32Array(FIRST_SLOTS);
  let counts = new Uint32Array(FIRST_SLOTS);
  let used = 0;

  function slotOf(id: number): number {
    const mask = keys.length - 1;
    let slot = Math.imul(id + 1, 0x9e3779b1) >>> (32 - Math.log2(keys.length));
    while (keys[slot] !== 0 && keys[slot] !== id + 1) slot = (slot + 1) & mask;
    return slot;
  }

  function grow(): void {
    const [oldKeys, oldCounts] = [keys, counts];
    keys = new Uint32Array(oldKeys.length * 2);
    counts = new Uint32Array(oldKeys.length * 2);
    used = 0;
    for (const [at, key] of oldKeys.entries()) {
      const count = oldCounts[at] as number;
      if (key !== 0 && count > 0) add(key - 1, count);
    }
  }

  function add(id: number, step: number): void {
    let slot = slotOf(id);
    if (keys[slot] === 0) {
      if (step <= 0) return;
      if (used >= keys.length * FULL) {
        grow();
        slot = slotOf(id);
      }
      keys[slot] = id + 1;
      used += 1;
    }
    counts[slot] = Math.max(0, (counts[slot] as number) + step);
  }

  return { add, get: (id) => counts[slotOf(id)] as number };
}
