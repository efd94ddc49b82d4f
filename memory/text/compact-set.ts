const LEAST_SLOTS = 64;

/** Of 32-bit integers, in 8 to 16 bytes each; a `Set` takes about 40. */
export type CompactSet = ReturnType<typeof createTable>;

/** Linear probing; at most half of the slots are in use. Zero is an empty slot, and stands for one as a value. */
function createTable() {
  let slots = new Int32Array(LEAST_SLOTS);
  let size = 0;

  function getSlot(value: number): number {
    const mask = slots.length - 1;
    let at = value & mask;
    while (slots[at] !== 0 && slots[at] !== value) at = (at + 1) & mask;
    return at;
  }

  function insert(value: number): void {
    const at = getSlot(value);
    if (slots[at] !== 0) return;
    slots[at] = value;
    size += 1;
  }

  return {
    has: (value: number): boolean => slots[getSlot(value || 1)] !== 0,
    add(value: number): void {
      insert(value || 1);
      if (size * 2 <= slots.length) return;
      const full = slots;
      slots = new Int32Array(full.length * 2);
      size = 0;
      for (const each of full) if (each !== 0) insert(each);
    },
    get size() {
      return size;
    },
  };
}

/** Holds the latest `most / 2` at least; the older half is dropped whenever there are `most`. */
export function createCompactSet(most: number): CompactSet {
  let older = createTable();
  let newer = createTable();
  const has = (value: number): boolean => newer.has(value) || older.has(value);
  return {
    has,
    add(value) {
      if (has(value)) return;
      newer.add(value);
      if (newer.size * 2 < most) return;
      older = newer;
      newer = createTable();
    },
    get size() {
      return older.size + newer.size;
    },
  };
}
