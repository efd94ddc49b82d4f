import { grown } from './grow-array.ts';

/** Numbers of a list; they stand only until the same lists are read again. */
export interface Reading {
  readonly values: Uint32Array;
  readonly count: number;
}

/**
 * Lists of whole numbers (32 bits, without sign) by a small whole number. They only grow, and share blocks of memory
 * that double with their list: most lists of words hold one number.
 */
export interface Postings {
  add(list: number, value: number): void;
  /** In the order they were added. */
  read(list: number): Reading;
  /** Takes out all that does not pass; lists keep their order. */
  retain(keeps: (value: number) => boolean): void;
  clear(): void;
}

const CHUNK_BITS = 16;
const CHUNK = 1 << CHUNK_BITS;
/** Blocks of 2, 4, 8 and so on up to this, each followed by the place of the next. */
const LARGEST_BLOCK = 1_024;
const DOUBLED = LARGEST_BLOCK - 2;

export function createPostings(): Postings {
  let chunks: Uint32Array[] = [];
  let free = CHUNK;
  let counts = new Uint32Array(1_024);
  /** Place of the first number of a list, and of the next to be written. */
  let first = new Uint32Array(1_024);
  let next = new Uint32Array(1_024);
  let values = new Uint32Array(1_024);

  function block(size: number): number {
    if (free + size + 1 > CHUNK) {
      chunks.push(new Uint32Array(CHUNK));
      free = 0;
    }
    const place = (chunks.length - 1) * CHUNK + free;
    free += size + 1;
    return place;
  }

  function write(place: number, value: number): void {
    (chunks[place >>> CHUNK_BITS] as Uint32Array)[place & (CHUNK - 1)] = value;
  }

  function add(list: number, value: number): void {
    counts = grown(counts, list);
    first = grown(first, list);
    next = grown(next, list);
    const count = counts[list] as number;
    if (isFull(count)) {
      const place = block(count < DOUBLED ? count + 2 : LARGEST_BLOCK);
      if (count === 0) first[list] = place;
      else write(next[list] as number, place);
      next[list] = place;
    }
    write(next[list] as number, value);
    next[list] = (next[list] as number) + 1;
    counts[list] = count + 1;
  }

  function readFrom(from: readonly Uint32Array[], start: number, count: number): void {
    if (count > values.length) values = new Uint32Array(count * 2);
    let place = start;
    for (let done = 0; done < count; ) {
      const size = done < DOUBLED ? done + 2 : LARGEST_BLOCK;
      const chunk = from[place >>> CHUNK_BITS] as Uint32Array;
      const at = place & (CHUNK - 1);
      const here = Math.min(size, count - done);
      // A view costs more than a few numbers.
      if (here < 16) for (let nth = 0; nth < here; nth += 1) values[done + nth] = chunk[at + nth] as number;
      else values.set(chunk.subarray(at, at + here), done);
      done += here;
      if (done < count) place = chunk[at + size] as number;
    }
  }

  function clear(): void {
    chunks = [];
    free = CHUNK;
    counts.fill(0);
  }

  return {
    add,
    read(list) {
      const count = counts[list] ?? 0;
      readFrom(chunks, first[list] ?? 0, count);
      return { values, count };
    },
    retain(keeps) {
      const [oldChunks, oldCounts, oldFirst] = [chunks, counts.slice(), first.slice()];
      clear();
      for (const [list, count] of oldCounts.entries()) {
        readFrom(oldChunks, oldFirst[list] as number, count);
        for (let at = 0; at < count; at += 1) if (keeps(values[at] as number)) add(list, values[at] as number);
      }
    },
    clear,
  };
}

/** Blocks of 2, 4, … 512 are full at 2, 6, … 1,022, later ones at every 1,024. */
function isFull(count: number): boolean {
  return count <= DOUBLED ? ((count + 2) & (count + 1)) === 0 : (count - DOUBLED) % LARGEST_BLOCK === 0;
}
