/** Texts as subword ids, each with the direction that the model gives it, row-major. */
export interface Examples {
  readonly texts: readonly (readonly number[])[];
  readonly targets: Float32Array;
}

export interface Training {
  readonly dimensions: number;
  readonly rounds: number;
  /** Of the mean length of a row; it falls to 0 in a straight line. */
  readonly rate: number;
}

const BATCH = 256;
const FIRST_DECAY = 0.9;
const SECOND_DECAY = 0.999;
const TINY = 1e-8;

/**
 * Moves rows in place so that the sum of a text's rows points where the model's vector of the text does. The order of
 * the texts is drawn from a fixed seed.
 *
 * Source: Adam (Kingma and Ba, 2015), with moments that change only for the rows of a batch.
 *
 * @returns the mean cosine of the last round's texts, each before its batch changed the rows
 */
export function train(rows: Float32Array, { texts, targets }: Examples, training: Training): number {
  const { dimensions, rounds, rate } = training;
  const optimizer = createOptimizer(rows, dimensions);
  const steps = rounds * Math.ceil(texts.length / BATCH);
  let step = 0;
  let cosines = 0;
  for (let round = 0; round < rounds; round += 1) {
    cosines = 0;
    const order = shuffle(texts.length, round + 1);
    for (let from = 0; from < order.length; from += BATCH) {
      const batch = order.subarray(from, from + BATCH);
      for (const at of batch) {
        const target = targets.subarray(at * dimensions, (at + 1) * dimensions);
        cosines += optimizer.add(texts[at] as readonly number[], target, 1 / batch.length);
      }
      optimizer.step(rate * (1 - step / steps));
      step += 1;
    }
  }
  return cosines / texts.length;
}

interface Optimizer {
  /** @returns the cosine of the text's sum with the target, a unit vector */
  add(text: readonly number[], target: Float32Array, weight: number): number;
  step(rate: number): void;
}

function createOptimizer(rows: Float32Array, dimensions: number): Optimizer {
  const [first, second] = [new Float32Array(rows.length), new Float32Array(rows.length)];
  const gradients = new Map<number, Float32Array>();
  let steps = 0;
  return {
    add(text, target, weight) {
      const sum = new Float32Array(dimensions);
      for (const id of text) addTo(sum, rows.subarray(id * dimensions, (id + 1) * dimensions), 1);
      const length = Math.sqrt(dot(sum, sum));
      if (length === 0) return 0;
      const cosine = dot(sum, target) / length;
      // The gradient of 1 - cosine by the sum, the same for each of its rows.
      const gradient = sum.map(
        (value, axis) => (weight * ((cosine * value) / length - (target[axis] as number))) / length,
      );
      for (const id of text) {
        const known = gradients.get(id);
        if (known === undefined) gradients.set(id, gradient.slice());
        else addTo(known, gradient, 1);
      }
      return cosine;
    },
    step(rate) {
      steps += 1;
      const correction = Math.sqrt(1 - SECOND_DECAY ** steps) / (1 - FIRST_DECAY ** steps);
      for (const [id, gradient] of gradients) {
        for (let axis = 0, at = id * dimensions; axis < dimensions; axis += 1, at += 1) {
          const slope = gradient[axis] as number;
          const mean = FIRST_DECAY * (first[at] as number) + (1 - FIRST_DECAY) * slope;
          const square = SECOND_DECAY * (second[at] as number) + (1 - SECOND_DECAY) * slope * slope;
          first[at] = mean;
          second[at] = square;
          rows[at] = (rows[at] as number) - (rate * correction * mean) / (Math.sqrt(square) + TINY);
        }
      }
      gradients.clear();
    },
  };
}

function addTo(sum: Float32Array, row: Float32Array, weight: number): void {
  for (let axis = 0; axis < sum.length; axis += 1) sum[axis] = (sum[axis] as number) + weight * (row[axis] as number);
}

export function dot(left: Float32Array, right: Float32Array): number {
  let sum = 0;
  for (let axis = 0; axis < left.length; axis += 1) sum += (left[axis] as number) * (right[axis] as number);
  return sum;
}

/** Fisher and Yates, with random numbers of xorshift. */
function shuffle(count: number, seed: number): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, at) => at);
  let state = seed * 2_654_435_761;
  for (let at = count - 1; at > 0; at -= 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    const other = (state >>> 0) % (at + 1);
    [order[at], order[other]] = [order[other] as number, order[at] as number];
  }
  return order;
}
