import type { Distilled } from './distil.ts';

const CLOSE = 0.999;

/**
 * Row by row cosine of a table with another (int8 rows, then float32 scales). An axis may point either way: each is
 * turned to agree with the other table's first.
 */
export function compareTables(own: Distilled, other: Uint8Array<ArrayBuffer>): { least: number; below: number } {
  const { dimensions, rows, scales } = own;
  if (other.length !== rows.length + scales.length * 4) throw new Error('the other table has another size');
  const theirs = new Int8Array(other.buffer, other.byteOffset, rows.length);
  const signs = new Float64Array(dimensions);
  for (let at = 0; at < rows.length; at += 1) {
    signs[at % dimensions] = (signs[at % dimensions] as number) + (rows[at] as number) * (theirs[at] as number);
  }
  let least = 1;
  let below = 0;
  for (let start = 0; start < rows.length; start += dimensions) {
    let [both, mine, their] = [0, 0, 0];
    for (let axis = 0; axis < dimensions; axis += 1) {
      const left = (rows[start + axis] as number) * Math.sign(signs[axis] as number);
      const right = theirs[start + axis] as number;
      both += left * right;
      mine += left * left;
      their += right * right;
    }
    const cosine = both / Math.sqrt(mine * their);
    least = Math.min(least, cosine);
    if (!(cosine >= CLOSE)) below += 1;
  }
  return { least, below };
}
