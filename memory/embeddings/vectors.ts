/**
 * A unit vector without what all texts share, which distinguishes none of them; itself where there are too few.
 *
 * For a mean m, (q - m) · d ranks unit vectors d as (q - m) · (d - m) does: the stored ones need no change when the mean
 * moves.
 */
export function centerVector(vector: Float32Array, mean: Float32Array | null): Float32Array {
  return mean === null ? vector : toUnit(vector.map((value, at) => value - (mean[at] ?? 0)));
}

/** Normalizes in place; a zero vector is left unchanged. */
export function toUnit(vector: Float32Array): Float32Array {
  let squares = 0;
  for (const value of vector) squares += value * value;
  if (squares === 0) return vector;
  const factor = 1 / Math.sqrt(squares);
  for (let at = 0; at < vector.length; at += 1) vector[at] = (vector[at] as number) * factor;
  return vector;
}

const LEAST = 100;
const SAMPLED = 2_000;

/** About the mean of many vectors, from a sample; null for fewer than 100, whose mean is rather their topic. */
export function createMeanVector(
  sample: (most: number) => Promise<readonly Float32Array[]>,
): (count: number) => Promise<Float32Array | null> {
  let sampledAt = 0;
  let mean: Promise<Float32Array | null> = Promise.resolve(null);
  return (count) => {
    if (count < LEAST) return Promise.resolve(null);
    if (count < sampledAt * 2) return mean;
    sampledAt = count;
    mean = sample(SAMPLED).then(computeMean);
    mean.catch(() => {
      sampledAt = 0;
    });
    return mean;
  };
}

function computeMean(vectors: readonly Float32Array[]): Float32Array | null {
  const [first] = vectors;
  if (first === undefined) return null;
  const mean = new Float32Array(first.length);
  for (const vector of vectors) {
    for (const [at, value] of vector.entries()) mean[at] = (mean[at] as number) + value / vectors.length;
  }
  return mean;
}
