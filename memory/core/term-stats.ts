import type { IndexFilter } from '../ports.ts';
import { createTermCounter, type TermCounter } from './term-counter.ts';

export interface CountedRow {
  readonly kind: 'node' | 'turn' | 'fact';
  readonly session_id: string;
  readonly project: string;
}

/** In how many rows each token stands, per session and project. Held in memory. */
export interface TermStats {
  /** `tokens` may repeat. */
  add(row: CountedRow, tokens: readonly string[]): void;
  /** `tokens` must be those it was added with. */
  remove(row: CountedRow, tokens: readonly string[]): void;
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

export function createTermStats(): TermStats {
  const ids = new Map<string, number>();
  const freeIds: number[] = [];
  const projects = new Map<string, Group>();
  /** By session, then by project. */
  const sessions = new Map<string, Map<string, Group>>();
  /** In how many rows a token stands at all; without one it is forgotten. */
  let totals = new Uint32Array(1_024);
  /** Number of the count that saw the token last: repeated tokens of one row are known by it. */
  let seen = new Uint32Array(1_024);
  let counted = 0;

  function groupsOf({ session_id, project }: CountedRow): [Group, Group] {
    const inProject = projects.get(project) ?? { rows: 0, counts: createTermCounter() };
    projects.set(project, inProject);
    const ofSession = sessions.get(session_id) ?? new Map<string, Group>();
    sessions.set(session_id, ofSession);
    const inSession = ofSession.get(project) ?? { rows: 0, counts: createTermCounter() };
    ofSession.set(project, inSession);
    return [inProject, inSession];
  }

  function idOf(token: string): number {
    const known = ids.get(token);
    if (known !== undefined) return known;
    const id = freeIds.pop() ?? ids.size;
    ids.set(token, id);
    if (id >= totals.length) {
      totals = grown(totals);
      seen = grown(seen);
    }
    return id;
  }

  // Runs over every word of the history when the index opens; a Set for each row would double its time.
  function count(row: CountedRow, tokens: readonly string[], step: 1 | -1): void {
    const [inProject, inSession] = groupsOf(row);
    // Facts have no words of their own here: counted, they would make every word rarer.
    if (row.kind !== 'fact') for (const group of [inProject, inSession]) group.rows += step;
    counted += 1;
    for (const token of tokens) {
      if (step < 0 && !ids.has(token)) continue;
      const id = idOf(token);
      if (seen[id] === counted) continue;
      seen[id] = counted;
      totals[id] = (totals[id] as number) + step;
      inProject.counts.add(id, step);
      inSession.counts.add(id, step);
      if (totals[id] !== 0) continue;
      ids.delete(token);
      freeIds.push(id);
    }
  }

  function groupsIn({ project, sessionId }: IndexFilter): Group[] {
    const among = sessionId === undefined ? projects : (sessions.get(sessionId) ?? new Map<string, Group>());
    if (project === undefined) return [...among.values()];
    const only = among.get(project);
    return only === undefined ? [] : [only];
  }

  function weightsOf(tokens: readonly string[], filter: IndexFilter, least: number): ReadonlyMap<string, number> {
    const groups = groupsIn(filter);
    const total = groups.reduce((sum, group) => sum + group.rows, 0);
    const weights = new Map<string, number>();
    for (const token of tokens) {
      const id = ids.get(token);
      const df = id === undefined ? 0 : groups.reduce((sum, group) => sum + group.counts.get(id), 0);
      if (df >= least) weights.set(token, Math.log(1 + (total - df + 0.5) / (df + 0.5)));
    }
    return weights;
  }

  return {
    add: (row, tokens) => count(row, tokens, 1),
    remove: (row, tokens) => count(row, tokens, -1),
    rowsIn: (filter) => groupsIn(filter).reduce((sum, group) => sum + group.rows, 0),
    clear() {
      for (const held of [ids, projects, sessions]) held.clear();
      freeIds.length = 0;
      totals.fill(0);
    },
    weights: (tokens, filter) => weightsOf(tokens, filter, 0),
    knownWeights: (tokens, filter) => weightsOf(tokens, filter, 1),
  };
}

function grown(counts: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(counts.length * 2);
  larger.set(counts);
  return larger;
}
