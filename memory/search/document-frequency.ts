import { grown } from './grow-array.ts';
import type { IndexFilter } from './node-index.ts';
import type { TextIds } from './string-interner.ts';
import { createTermCounter, type TermCounter } from './term-counter.ts';

export interface CountedRow {
  readonly kind: 'node' | 'turn' | 'fact';
  readonly session_id: string;
  readonly project: string;
}

/** In how many rows each token stands, per project; for a session it is looked up. Held in memory. */
export interface TermStats {
  /** `terms` are the numbers of its words, and may repeat. */
  add(row: CountedRow, terms: readonly number[]): void;
  /** `terms` must be those it was added with. */
  remove(row: CountedRow, terms: readonly number[]): void;
  /** Rows of the filter, those of facts left out. */
  rowsIn(filter: IndexFilter): number;
  clear(): void;
  /** See `NodeIndex.termWeights`. */
  weights(tokens: readonly string[], filter: IndexFilter): ReadonlyMap<string, number>;
  /** The same of those tokens that stand in a row of the filter. */
  knownWeights(tokens: readonly string[], filter: IndexFilter): ReadonlyMap<string, number>;
}

interface Group {
  rows: number;
  readonly counts: TermCounter;
}

/** @param rowsWith  in how many rows of a filter, those of facts left out, a term stands */
export function createTermStats(
  ids: Pick<TextIds, 'find'>,
  rowsWith: (term: number, filter: IndexFilter) => number,
): TermStats {
  const projects = new Map<string, Group>();
  /** Rows by session, then by project. */
  const sessions = new Map<string, Map<string, number>>();
  /** Number of the count that saw the token last: repeated tokens of one row are known by it. */
  let seen = new Uint32Array(1_024);
  let counted = 0;

  // Runs over every word of the history when the index opens; a Set for each row would double its time.
  function count(row: CountedRow, terms: readonly number[], step: 1 | -1): void {
    // Facts have no words of their own here: counted, they would make every word rarer.
    if (row.kind === 'fact') return;
    const group = projects.get(row.project) ?? { rows: 0, counts: createTermCounter() };
    projects.set(row.project, group);
    const ofSession = sessions.get(row.session_id) ?? new Map<string, number>();
    sessions.set(row.session_id, ofSession);
    group.rows += step;
    ofSession.set(row.project, (ofSession.get(row.project) ?? 0) + step);
    counted += 1;
    for (const id of terms) {
      seen = grown(seen, id);
      if (seen[id] === counted) continue;
      seen[id] = counted;
      group.counts.add(id, step);
    }
  }

  function groupsIn({ project }: IndexFilter): Group[] {
    if (project === undefined) return [...projects.values()];
    const only = projects.get(project);
    return only === undefined ? [] : [only];
  }

  function rowsIn(filter: IndexFilter): number {
    const { project, sessionId } = filter;
    if (sessionId === undefined) return groupsIn(filter).reduce((sum, group) => sum + group.rows, 0);
    const ofSession = sessions.get(sessionId);
    if (project !== undefined) return ofSession?.get(project) ?? 0;
    return [...(ofSession?.values() ?? [])].reduce((sum, rows) => sum + rows, 0);
  }

  function weightsOf(tokens: readonly string[], filter: IndexFilter, least: number): ReadonlyMap<string, number> {
    const groups = groupsIn(filter);
    const total = rowsIn(filter);
    const standing = (id: number): number =>
      filter.sessionId === undefined
        ? groups.reduce((sum, group) => sum + group.counts.get(id), 0)
        : rowsWith(id, filter);
    const weights = new Map<string, number>();
    for (const token of tokens) {
      const id = ids.find(token);
      const df = id === undefined ? 0 : standing(id);
      if (df >= least) weights.set(token, Math.log(1 + (total - df + 0.5) / (df + 0.5)));
    }
    return weights;
  }

  return {
    add: (row, terms) => count(row, terms, 1),
    remove: (row, terms) => count(row, terms, -1),
    rowsIn,
    clear() {
      projects.clear();
      sessions.clear();
    },
    weights: (tokens, filter) => weightsOf(tokens, filter, 0),
    knownWeights: (tokens, filter) => weightsOf(tokens, filter, 1),
  };
}
