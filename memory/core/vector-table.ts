import { BLOCK_BYTES, createSimdMemory, type SimdMemory } from './simd.ts';

/** Vectors of one length, by rows from 0 on, to be compared all at once. Held in memory. */
export interface VectorTable {
  /** Writes the row after the last, or one that is there. */
  set(row: number, vector: Float32Array): void;
  /** Writes a row over another. */
  copy(from: number, to: number): void;
  /** Inner products with the rows from one to before another, in their order; they stand until the next call. */
  products(vector: Float32Array, from: number, to: number): Float32Array;
  clear(): void;
}

const FIRST_ROWS = 64;
const FLOAT_BYTES = 4;

export function createVectorTable(dimensions: number): VectorTable {
  /** The vector that is asked comes first, then the rows, then their products. */
  const vectorBytes = Math.ceil((dimensions * FLOAT_BYTES) / BLOCK_BYTES) * BLOCK_BYTES;
  const width = vectorBytes / FLOAT_BYTES;
  let room = 0;
  let memory: SimdMemory | null = null;
  let numbers = new Float32Array(0);

  function makeRoom(rows: number): void {
    if (rows <= room) return;
    const held = numbers.subarray(0, width * (1 + room));
    room = Math.max(rows, FIRST_ROWS, room * 2);
    memory = createSimdMemory(vectorBytes * (1 + room) + FLOAT_BYTES * room);
    numbers = new Float32Array(memory.buffer);
    numbers.set(held);
  }

  return {
    set(row, vector) {
      makeRoom(row + 1);
      numbers.set(vector, width * (1 + row));
    },
    copy(from, to) {
      numbers.copyWithin(width * (1 + to), width * (1 + from), width * (2 + from));
    },
    products(vector, from, to) {
      if (memory === null || to <= from) return new Float32Array(0);
      numbers.set(vector);
      const out = vectorBytes * (1 + room);
      memory.products(0, vectorBytes * (1 + from), vectorBytes * (1 + to), out, vectorBytes);
      return numbers.subarray(out / FLOAT_BYTES, out / FLOAT_BYTES + to - from);
    },
    clear() {
      room = 0;
      memory = null;
      numbers = new Float32Array(0);
    },
  };
}
