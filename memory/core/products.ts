/** The rows of a table of vectors from one to before another. */
export interface RowRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Inner products of a vector with rows of a table, into the first places of the answer; they stand until the next call.
 * One loop over all and no number leaves it: boxed one by one, they would cost more than their sums.
 */
export function products(vector: Float32Array, table: Float32Array, { from, to }: RowRange): Float64Array {
  const size = vector.length;
  if (results.length < to - from) results = new Float64Array((to - from) * 2);
  for (let row = from; row < to; row += 1) {
    const start = row * size;
    let sum0 = 0.0;
    let sum1 = 0.0;
    let sum2 = 0.0;
    let sum3 = 0.0;
    let axis = 0;
    // Four sums at once are faster than one.
    for (; axis + 3 < size; axis += 4) {
      const at = start + axis;
      sum0 += (vector[axis] as number) * (table[at] as number);
      sum1 += (vector[axis + 1] as number) * (table[at + 1] as number);
      sum2 += (vector[axis + 2] as number) * (table[at + 2] as number);
      sum3 += (vector[axis + 3] as number) * (table[at + 3] as number);
    }
    for (; axis < size; axis += 1) sum0 += (vector[axis] as number) * (table[start + axis] as number);
    results[row - from] = sum0 + sum1 + sum2 + sum3;
  }
  return results;
}

let results = new Float64Array(1_024);
