import type { IndexEntry, IndexFilter } from '../ports.ts';

export interface IndexedRow {
  readonly row_id: string;
  readonly kind: 'node' | 'turn' | 'fact';
  readonly node_id: string;
  readonly session_id: string;
  readonly project: string;
  readonly turn: string;
  readonly digest: string;
}

/** Which rows are indexed, and in how many of them each token stands, per session. Held in memory. */
export interface TermStats {
  /** `tokens` may repeat. */
  add(row: IndexedRow, tokens: readonly string[]): void;
  /** `tokens` must be those it was added with. Unknown rows are no error. */
  remove(rowId: string, tokens: readonly string[]): void;
  has(rowId: string): boolean;
  rowsOf(nodeId: string): readonly string[];
  nodeIds(): ReadonlySet<string>;
  /** See `NodeIndex.entries`. */
  entries(): ReadonlyMap<string, IndexEntry>;
  count(): number;
  clear(): void;
  /** See `NodeIndex.termWeights`. */
  weights(tokens: readonly string[], filter: IndexFilter): ReadonlyMap<string, number>;
  /** The same of those tokens that stand in a row of the filter. */
  knownWeights(tokens: readonly string[], filter: IndexFilter): ReadonlyMap<string, number>;
}

interface Group {
  readonly session_id: string;
  readonly project: string;
  rows: number;
}

interface Held extends Pick<IndexedRow, 'kind' | 'node_id' | 'turn' | 'digest'> {
  readonly group: Group;
}

interface Frequency {
  /** Number of the count that saw the token last: repeated tokens of one row are known by it. */
  seen: number;
  readonly groups: Map<Group, number>;
}

export function createTermStats(): TermStats {
  const groups = new Map<string, Group>();
  const rows = new Map<string, Held>();
  const byNode = new Map<string, Set<string>>();
  const frequencies = new Map<string, Frequency>();
  let counted = 0;

  function groupOf({ session_id, project }: IndexedRow): Group {
    const key = JSON.stringify([session_id, project]);
    const known = groups.get(key) ?? { session_id, project, rows: 0 };
    groups.set(key, known);
    return known;
  }

  // Runs over every word of the history when the index opens; a Set for each row would double its time.
  function countTokens(tokens: readonly string[], group: Group, step: 1 | -1): void {
    counted += 1;
    for (const token of tokens) {
      let frequency = frequencies.get(token);
      if (frequency === undefined) {
        if (step < 0) continue;
        frequency = { seen: 0, groups: new Map() };
        frequencies.set(token, frequency);
      }
      if (frequency.seen === counted) continue;
      frequency.seen = counted;
      const left = (frequency.groups.get(group) ?? 0) + step;
      if (left > 0) frequency.groups.set(group, left);
      else frequency.groups.delete(group);
    }
    if (step > 0) return;
    for (const token of tokens) if (frequencies.get(token)?.groups.size === 0) frequencies.delete(token);
  }

  function weightsOf(tokens: readonly string[], filter: IndexFilter, least: number): ReadonlyMap<string, number> {
    let total = 0;
    for (const group of groups.values()) if (fits(group, filter)) total += group.rows;
    const weights = new Map<string, number>();
    for (const token of tokens) {
      let df = 0;
      for (const [group, count] of frequencies.get(token)?.groups ?? []) if (fits(group, filter)) df += count;
      if (df >= least) weights.set(token, Math.log(1 + (total - df + 0.5) / (df + 0.5)));
    }
    return weights;
  }

  return {
    add(row, tokens) {
      const group = groupOf(row);
      // Facts have no words of their own here: counted, they would make every word rarer.
      if (row.kind !== 'fact') group.rows += 1;
      rows.set(row.row_id, { kind: row.kind, node_id: row.node_id, turn: row.turn, digest: row.digest, group });
      const siblings = byNode.get(row.node_id) ?? new Set();
      byNode.set(row.node_id, siblings.add(row.row_id));
      countTokens(tokens, group, 1);
    },
    remove(rowId, tokens) {
      const row = rows.get(rowId);
      if (row === undefined) return;
      rows.delete(rowId);
      if (row.kind !== 'fact') row.group.rows -= 1;
      const siblings = byNode.get(row.node_id);
      siblings?.delete(rowId);
      if (siblings?.size === 0) byNode.delete(row.node_id);
      countTokens(tokens, row.group, -1);
    },
    has: (rowId) => rows.has(rowId),
    rowsOf: (nodeId) => [...(byNode.get(nodeId) ?? [])],
    nodeIds: () => new Set(byNode.keys()),
    entries: () =>
      new Map([...byNode].map(([id, rowIds]) => [id, entryOf([...rowIds].flatMap((row) => rows.get(row) ?? []))])),
    count: () => rows.size,
    clear() {
      for (const held of [groups, rows, byNode, frequencies]) held.clear();
    },
    weights: (tokens, filter) => weightsOf(tokens, filter, 0),
    knownWeights: (tokens, filter) => weightsOf(tokens, filter, 1),
  };
}

function entryOf(rows: readonly Held[]): IndexEntry {
  const turns = rows.map(({ turn }) => turn).filter((turn) => turn !== '');
  return { digest: rows.find(({ kind }) => kind === 'node')?.digest ?? '', turns };
}

function fits(group: Group, { project, sessionId }: IndexFilter): boolean {
  return (
    (project === undefined || group.project === project) && (sessionId === undefined || group.session_id === sessionId)
  );
}
