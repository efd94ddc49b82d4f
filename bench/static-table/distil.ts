import { getMean, principalAxes } from './principal-axes.ts';

export interface Distilled {
  readonly dimensions: number;
  readonly rows: Int8Array<ArrayBuffer>;
  readonly scales: Float32Array<ArrayBuffer>;
}

/** Rows before this one are punctuation, single letters and placeholders: they say nothing of how meaning varies. */
const FIRST_WORD = 1_996;

/** What the model is asked for a piece of its vocabulary. */
export function textOfPiece(piece: string): string {
  if (/^\[.+\]$/.test(piece)) return 'unk';
  return piece.startsWith('##') && piece.length > 2 ? piece.slice(2) : piece;
}

/**
 * Makes a small table of the model's vectors: mean taken away, the strongest axes kept, common pieces (the vocabulary
 * is ordered by frequency) made short, eight bits a number.
 *
 * @param embeddings  row-major, one row for each piece
 */
export function distil(embeddings: Float32Array, width: number, dimensions: number): Distilled {
  const count = embeddings.length / width;
  const centred = withoutMean(embeddings, width);
  const axes = principalAxes(centred.subarray(Math.min(FIRST_WORD, count - 1) * width), width, dimensions);
  const rows = new Int8Array(count * dimensions);
  const scales = new Float32Array(count);
  for (let id = 0; id < count; id += 1) {
    const weight = Math.log(1 + Math.max(1, id - FIRST_WORD + 1));
    const point = centred.subarray(id * width, (id + 1) * width);
    const row = axes.map((axis) => weight * dot(axis, point));
    const scale = row.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127;
    scales[id] = scale;
    for (const [at, value] of row.entries()) rows[id * dimensions + at] = scale === 0 ? 0 : Math.round(value / scale);
  }
  return { dimensions, rows, scales };
}

function withoutMean(embeddings: Float32Array, width: number): Float64Array {
  const mean = getMean(embeddings, width);
  return Float64Array.from(embeddings, (value, at) => value - (mean[at % width] as number));
}

function dot(left: Float64Array, right: Float64Array): number {
  let sum = 0;
  for (let at = 0; at < left.length; at += 1) sum += (left[at] as number) * (right[at] as number);
  return sum;
}
