import type { FoundRow, IndexEntry } from '../ports.ts';

/** What is kept of a row beside the table, so that a search need not fetch it. */
export interface BookedRow extends FoundRow {
  readonly digest: string;
}

/** Every row of the index without its texts and vectors. Held in memory. */
export interface RowBook {
  put(row: BookedRow): void;
  remove(rowId: string): void;
  get(rowId: string): FoundRow | undefined;
  /** Whether it has any row of this kind. */
  holds(kind: FoundRow['kind']): boolean;
  rowsOf(nodeId: string): readonly string[];
  nodeIds(): ReadonlySet<string>;
  /** See `NodeIndex.entries`. */
  entries(): ReadonlyMap<string, IndexEntry>;
  count(): number;
  clear(): void;
}

export function createRowBook(): RowBook {
  const rows = new Map<string, FoundRow>();
  /** By node, where its own row is there. */
  const digests = new Map<string, string>();
  const byNode = new Map<string, string[]>();
  /** Ids and ends stand in many rows; each is held once. */
  const names = new Map<string, string>();
  const ofKind = { node: 0, turn: 0, fact: 0 };

  function once(text: string): string {
    const known = names.get(text);
    if (known !== undefined) return known;
    names.set(text, text);
    return text;
  }

  function remove(rowId: string): void {
    const row = rows.get(rowId);
    if (row === undefined) return;
    rows.delete(rowId);
    ofKind[row.kind] -= 1;
    if (row.kind === 'node') digests.delete(row.node_id);
    const siblings = (byNode.get(row.node_id) ?? []).filter((id) => id !== rowId);
    if (siblings.length > 0) byNode.set(row.node_id, siblings);
    else byNode.delete(row.node_id);
  }

  return {
    put({ row_id, kind, node_id, session_id, project, turn, origin, created_at_ms, before, sources, timed, digest }) {
      if (rows.has(row_id)) remove(row_id);
      const shared = { node_id: once(node_id), session_id: once(session_id), project: once(project), turn: once(turn) };
      const lists = { before: before.map(once), sources: sources.map(once) };
      rows.set(row_id, { row_id, kind, ...shared, origin, created_at_ms, ...lists, timed });
      ofKind[kind] += 1;
      if (kind === 'node') digests.set(shared.node_id, digest);
      const siblings = byNode.get(node_id);
      if (siblings === undefined) byNode.set(shared.node_id, [row_id]);
      else siblings.push(row_id);
    },
    remove,
    get: (rowId) => rows.get(rowId),
    holds: (kind) => ofKind[kind] > 0,
    rowsOf: (nodeId) => byNode.get(nodeId) ?? [],
    nodeIds: () => new Set(byNode.keys()),
    entries: () =>
      new Map(
        [...byNode].map(([id, rowIds]) => {
          const turns = rowIds.map((rowId) => rows.get(rowId)?.turn ?? '').filter((turn) => turn !== '');
          return [id, { digest: digests.get(id) ?? '', turns }];
        }),
      ),
    count: () => rows.size,
    clear() {
      for (const held of [rows, digests, byNode, names]) held.clear();
      Object.assign(ofKind, { node: 0, turn: 0, fact: 0 });
    },
  };
}
