const SWEEPS = 60;
const NOTHING = 1e-12;

/**
 * The `count` directions in which points lie farthest from the origin, each of length 1, strongest first. The sign of a direction is
 * chosen so that its greatest component is positive.
 *
 * @param points  row-major, `dimensions` numbers each
 * Source: cyclic Jacobi rotations of the matrix of second moments (Golub, Van Loan, Matrix Computations, 8.5).
 */
export function principalAxes(points: Float64Array, dimensions: number, count: number): Float64Array[] {
  const { values, vectors } = eigen(secondMoments(points, dimensions), dimensions);
  return [...values.keys()]
    .sort((left, right) => (values[right] as number) - (values[left] as number))
    .slice(0, count)
    .map((column) =>
      Float64Array.from({ length: dimensions }, (_, row) => vectors[row * dimensions + column] as number),
    )
    .map(facingUp);
}

export function getMean(points: Float32Array | Float64Array, dimensions: number): Float64Array {
  const sums = new Float64Array(dimensions);
  for (let at = 0; at < points.length; at += 1) {
    sums[at % dimensions] = (sums[at % dimensions] as number) + (points[at] as number);
  }
  return sums.map((sum) => sum / (points.length / dimensions));
}

function facingUp(axis: Float64Array): Float64Array {
  const greatest = axis.reduce((best, value) => (Math.abs(value) > Math.abs(best) ? value : best), 0);
  return greatest < 0 ? axis.map((value) => -value) : axis;
}

function secondMoments(points: Float64Array, dimensions: number): Float64Array {
  const sums = new Float64Array(dimensions * dimensions);
  const count = points.length / dimensions;
  for (let start = 0; start < points.length; start += dimensions) {
    const point = points.subarray(start, start + dimensions);
    for (let i = 0; i < dimensions; i += 1) {
      const left = point[i] as number;
      for (let j = i; j < dimensions; j += 1) {
        sums[i * dimensions + j] = (sums[i * dimensions + j] as number) + left * (point[j] as number);
      }
    }
  }
  for (let i = 0; i < dimensions; i += 1) {
    for (let j = 0; j < i; j += 1) sums[i * dimensions + j] = sums[j * dimensions + i] as number;
  }
  return sums.map((sum) => sum / count);
}

function eigen(matrix: Float64Array, size: number): { readonly values: Float64Array; readonly vectors: Float64Array } {
  const vectors = new Float64Array(size * size);
  for (let at = 0; at < size; at += 1) vectors[at * size + at] = 1;
  const total = matrix.reduce((sum, value) => sum + value * value, 0);
  for (let sweep = 0; sweep < SWEEPS && offDiagonal(matrix, size) > NOTHING * total; sweep += 1) {
    for (let p = 0; p < size; p += 1) for (let q = p + 1; q < size; q += 1) rotate(matrix, vectors, { size, p, q });
  }
  return { values: Float64Array.from({ length: size }, (_, at) => matrix[at * size + at] as number), vectors };
}

function offDiagonal(matrix: Float64Array, size: number): number {
  let sum = 0;
  for (let i = 0; i < size; i += 1)
    for (let j = 0; j < size; j += 1) if (i !== j) sum += (matrix[i * size + j] as number) ** 2;
  return sum;
}

interface Pair {
  readonly size: number;
  readonly p: number;
  readonly q: number;
}

/** Makes the element (p, q) zero. */
function rotate(matrix: Float64Array, vectors: Float64Array, { size, p, q }: Pair): void {
  const apart = matrix[p * size + q] as number;
  if (apart === 0) return;
  const slope = ((matrix[q * size + q] as number) - (matrix[p * size + p] as number)) / (2 * apart);
  const tangent = (slope < 0 ? -1 : 1) / (Math.abs(slope) + Math.sqrt(slope * slope + 1));
  const cosine = 1 / Math.sqrt(tangent * tangent + 1);
  const sine = tangent * cosine;
  for (let at = 0; at < size; at += 1) turn(matrix, at * size + p, at * size + q, cosine, sine);
  for (let at = 0; at < size; at += 1) turn(matrix, p * size + at, q * size + at, cosine, sine);
  for (let at = 0; at < size; at += 1) turn(vectors, at * size + p, at * size + q, cosine, sine);
}

function turn(numbers: Float64Array, left: number, right: number, cosine: number, sine: number): void {
  const [one, other] = [numbers[left] as number, numbers[right] as number];
  numbers[left] = cosine * one - sine * other;
  numbers[right] = sine * one + cosine * other;
}
