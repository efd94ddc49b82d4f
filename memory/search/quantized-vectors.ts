import { BLOCK_BYTES, createSimdMemory, SCALE, type SimdMemory } from './dot-product.ts';

/**
 * Vectors of length 1, by rows from 0 on, to be compared all at once. Each number takes 16 bits, so a product is off by
 * some hundred-thousandths. Held in memory.
 */
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
const NUMBER_BYTES = 2;
const PRODUCT_BYTES = 4;

/** @param rows  that it will hold at once */
export function createVectorTable(dimensions: number, rows = FIRST_ROWS): VectorTable {
  /** The vector that is asked comes first, then the rows, then their products. */
  const vectorBytes = Math.ceil((dimensions * NUMBER_BYTES) / BLOCK_BYTES) * BLOCK_BYTES;
  const width = vectorBytes / NUMBER_BYTES;
  let room = 0;
  let memory: SimdMemory | null = null;
  let numbers = new Int16Array(0);

  function makeRoom(needed: number): void {
    if (needed <= room) return;
    room = Math.max(needed, rows, Math.ceil(room * 1.5));
    memory ??= createSimdMemory();
    memory.grow(vectorBytes * (1 + room) + PRODUCT_BYTES * room);
    numbers = new Int16Array(memory.buffer());
  }

  function write(vector: Float32Array, place: number): void {
    const from = width * place;
    for (let axis = 0; axis < dimensions; axis += 1) {
      numbers[from + axis] = Math.round((vector[axis] as number) * SCALE);
    }
  }

  return {
    set(row, vector) {
      makeRoom(row + 1);
      write(vector, row + 1);
    },
    copy(from, to) {
      numbers.copyWithin(width * (1 + to), width * (1 + from), width * (2 + from));
    },
    products(vector, from, to) {
      if (memory === null || to <= from) return new Float32Array(0);
      write(vector, 0);
      const out = vectorBytes * (1 + room);
      memory.products(0, vectorBytes * (1 + from), vectorBytes * (1 + to), out, vectorBytes);
      return new Float32Array(memory.buffer(), out, to - from);
    },
    clear() {
      room = 0;
      memory = null;
      numbers = new Int16Array(0);
    },
  };
}
