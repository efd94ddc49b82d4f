const LEAST = 100;
const SAMPLED = 2_000;

/**
 * About the mean of many vectors, from a sample; sampled again when there are twice as many. Null for fewer than 100,
 * whose mean is rather their topic.
 */
export function createMeanVector(
  sample: (most: number) => Promise<readonly Float32Array[]>,
): (count: number) => Promise<Float32Array | null> {
  let sampledAt = 0;
  let mean: Promise<Float32Array | null> = Promise.resolve(null);
  return (count) => {
    if (count < LEAST) return Promise.resolve(null);
    if (count < sampledAt * 2) return mean;
    sampledAt = count;
    mean = sample(SAMPLED).then(meanOf);
    mean.catch(() => {
      sampledAt = 0;
    });
    return mean;
  };
}

function meanOf(vectors: readonly Float32Array[]): Float32Array | null {
  const [first] = vectors;
  if (first === undefined) return null;
  const mean = new Float32Array(first.length);
  for (const vector of vectors) {
    for (const [at, value] of vector.entries()) mean[at] = (mean[at] as number) + value / vectors.length;
  }
  return mean;
}
