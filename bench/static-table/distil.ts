import { getMean, principalAxes } from './principal-axes.ts';
import { dot } from './train.ts';

export interface Distilled {
  readonly dimensions: number;
  readonly rows: Int8Array<ArrayBuffer>;
  readonly scales: Float32Array<ArrayBuffer>;
}

/** Rows before this one are punctuation, single letters and placeholders. */
const FIRST_WORD = 1_996;

/** What the model is asked for a piece of its vocabulary. */
export function textOfPiece(piece: string): string {
  if (/^\[.+\]$/.test(piece)) return 'unk';
  return piece.startsWith('##') && piece.length > 2 ? piece.slice(2) : piece;
}

/** Moves points to the axes on which texts differ most. */
export type Projection = (point: Float32Array) => Float32Array;

/** @param vectors  of texts, row-major, `width` numbers each */
export function createProjection(vectors: Float32Array, width: number, dimensions: number): Projection {
  const mean = getMean(vectors, width);
  const axes = principalAxes(
    Float64Array.from(vectors, (value, at) => value - (mean[at % width] as number)),
    width,
    dimensions,
  ).map((axis) => Float32Array.from(axis));
  return (point) => {
    const centered = point.map((value, at) => value - (mean[at] as number));
    return Float32Array.from(axes, (axis) => dot(axis, centered));
  };
}

/** What training starts from: a piece as the model sees it alone, common ones (the vocabulary is ordered) short. */
export function firstRows(pieces: Float32Array, width: number, dimensions: number, project: Projection): Float32Array {
  const count = pieces.length / width;
  const rows = new Float32Array(count * dimensions);
  for (let id = 0; id < count; id += 1) {
    const weight = Math.log(1 + Math.max(1, id - FIRST_WORD + 1));
    rows.set(
      project(pieces.subarray(id * width, (id + 1) * width)).map((value) => weight * value),
      id * dimensions,
    );
  }
  let lengths = 0;
  for (let at = 0; at < rows.length; at += dimensions) {
    const row = rows.subarray(at, at + dimensions);
    lengths += Math.sqrt(dot(row, row));
  }
  return rows.map((value) => (value * count) / lengths);
}

/** Eight bits a number, with a scale for each row. */
export function quantize(rows: Float32Array, dimensions: number): Distilled {
  const scales = new Float32Array(rows.length / dimensions);
  const rounded = new Int8Array(rows.length);
  for (const id of scales.keys()) {
    const row = rows.subarray(id * dimensions, (id + 1) * dimensions);
    const scale = row.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127;
    scales[id] = scale;
    if (scale > 0)
      rounded.set(
        row.map((value) => Math.round(value / scale)),
        id * dimensions,
      );
  }
  return { dimensions, rows: rounded, scales };
}
