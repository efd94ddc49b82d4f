import type { IndexFilter } from '../search/node-index.ts';

/** In how many turns each piece of the embedder's vocabulary stands, per project. Held in memory. */
export interface PieceStats {
  /** One turn's `pieces`, distinct. */
  add(project: string, pieces: Iterable<number>): void;
  /** `pieces` must be those it was added with. */
  remove(project: string, pieces: Iterable<number>): void;
  /** Inverse document frequency, ln(1 + (N - df + .5) / (df + .5)), over the filter's project, or over all. */
  idf(pieces: readonly number[], filter: IndexFilter): ReadonlyMap<number, number>;
  clear(): void;
}

interface Counted {
  turns: number;
  /** Grows with the greatest piece seen. */
  df: Uint32Array;
}

export function createPieceStats(): PieceStats {
  const projects = new Map<string, Counted>();

  function change(project: string, pieces: Iterable<number>, step: 1 | -1): void {
    const counted = projects.get(project) ?? { turns: 0, df: new Uint32Array(0) };
    projects.set(project, counted);
    counted.turns += step;
    for (const piece of pieces) {
      if (piece >= counted.df.length) counted.df = grown(counted.df, piece);
      counted.df[piece] = (counted.df[piece] as number) + step;
    }
    if (counted.turns <= 0) projects.delete(project);
  }

  return {
    add: (project, pieces) => change(project, pieces, 1),
    remove(project, pieces) {
      if (projects.has(project)) change(project, pieces, -1);
    },
    idf(pieces, { project }) {
      const one = project === undefined ? undefined : projects.get(project);
      const counted = project === undefined ? [...projects.values()] : one === undefined ? [] : [one];
      const turns = counted.reduce((sum, each) => sum + each.turns, 0);
      return new Map(
        pieces.map((piece) => {
          const df = counted.reduce((sum, each) => sum + (each.df[piece] ?? 0), 0);
          return [piece, Math.log(1 + (turns - df + 0.5) / (df + 0.5))];
        }),
      );
    },
    clear: () => projects.clear(),
  };
}

function grown(df: Uint32Array, piece: number): Uint32Array {
  const larger = new Uint32Array(Math.max(1_024, piece + 1, Math.ceil(df.length * 1.5)));
  larger.set(df);
  return larger;
}
