import type { FoundRow, IndexEntry, IndexFilter } from '../ports.ts';
import { grown } from './grown.ts';

/** What is kept of a row beside the table, so that a search need not fetch it. */
export interface BookedRow extends FoundRow {
  readonly digest: string;
}

/** Every row of the index without its texts and vectors. Held in memory. */
export interface RowBook {
  /** @returns its slot: a number that it has until it is removed, and no other row ever */
  put(row: BookedRow): number;
  remove(rowId: string): void;
  get(rowId: string): FoundRow | undefined;
  slotOf(rowId: string): number | undefined;
  at(slot: number): FoundRow | undefined;
  kindAt(slot: number): FoundRow['kind'] | undefined;
  /** Whether a filter lets the row of a slot through; not where there is none. */
  fitting(filter: IndexFilter): (slot: number) => boolean;
  /** Whether it has any row of this kind. */
  holds(kind: FoundRow['kind']): boolean;
  rowsOf(nodeId: string): readonly string[];
  nodeIds(): ReadonlySet<string>;
  /** See `NodeIndex.entries`. */
  entries(): ReadonlyMap<string, IndexEntry>;
  count(): number;
  clear(): void;
}

type Kind = FoundRow['kind'];
const KINDS: readonly Kind[] = ['turn', 'node', 'fact'];

export function createRowBook(): RowBook {
  const slots = new Map<string, number>();
  const rows: (FoundRow | undefined)[] = [];
  /** By node, where its own row is there. */
  const digests = new Map<string, string>();
  const byNode = new Map<string, string[]>();
  /** Ids and ends stand in many rows; each is held once. */
  const names = new Map<string, string>();
  /** By slot, so that many rows are told apart without being looked at: the kind's place plus one, 0 for none. */
  let kinds = new Uint32Array(1_024);
  let projects = new Uint32Array(1_024);
  let sessions = new Uint32Array(1_024);
  const numbers = new Map<string, number>();
  const ofKind = { node: 0, turn: 0, fact: 0 };

  function once(text: string): string {
    const known = names.get(text);
    if (known !== undefined) return known;
    names.set(text, text);
    return text;
  }

  function numberOf(text: string): number {
    const known = numbers.get(text) ?? numbers.size;
    numbers.set(text, known);
    return known;
  }

  const get = (rowId: string): FoundRow | undefined => rows[slots.get(rowId) ?? -1];

  function remove(rowId: string): void {
    const row = get(rowId);
    if (row === undefined) return;
    rows[slots.get(rowId) as number] = undefined;
    kinds[slots.get(rowId) as number] = 0;
    slots.delete(rowId);
    ofKind[row.kind] -= 1;
    if (row.kind === 'node') digests.delete(row.node_id);
    const siblings = (byNode.get(row.node_id) ?? []).filter((id) => id !== rowId);
    if (siblings.length > 0) byNode.set(row.node_id, siblings);
    else byNode.delete(row.node_id);
  }

  return {
    put({ row_id, kind, node_id, session_id, project, turn, origin, created_at_ms, before, sources, timed, digest }) {
      remove(row_id);
      const shared = { node_id: once(node_id), session_id: once(session_id), project: once(project), turn: once(turn) };
      const lists = { before: before.map(once), sources: sources.map(once) };
      const slot = rows.push({ row_id, kind, ...shared, origin, created_at_ms, ...lists, timed }) - 1;
      slots.set(row_id, slot);
      kinds = grown(kinds, slot);
      projects = grown(projects, slot);
      sessions = grown(sessions, slot);
      kinds[slot] = KINDS.indexOf(kind) + 1;
      projects[slot] = numberOf(shared.project);
      sessions[slot] = numberOf(shared.session_id);
      ofKind[kind] += 1;
      if (kind === 'node') digests.set(shared.node_id, digest);
      const siblings = byNode.get(node_id);
      if (siblings === undefined) byNode.set(shared.node_id, [row_id]);
      else siblings.push(row_id);
      return slot;
    },
    remove,
    get,
    slotOf: (rowId) => slots.get(rowId),
    at: (slot) => rows[slot],
    kindAt: (slot) => KINDS[(kinds[slot] ?? 0) - 1],
    fitting({ project, sessionId }) {
      // A text without a number stands nowhere.
      const inProject = project === undefined ? null : (numbers.get(project) ?? -1);
      const inSession = sessionId === undefined ? null : (numbers.get(sessionId) ?? -1);
      return (slot) =>
        (kinds[slot] ?? 0) !== 0 &&
        (inProject === null || projects[slot] === inProject) &&
        (inSession === null || sessions[slot] === inSession);
    },
    holds: (kind) => ofKind[kind] > 0,
    rowsOf: (nodeId) => byNode.get(nodeId) ?? [],
    nodeIds: () => new Set(byNode.keys()),
    entries: () =>
      new Map(
        [...byNode].map(([id, rowIds]) => {
          const turns = rowIds.map((rowId) => get(rowId)?.turn ?? '').filter((turn) => turn !== '');
          return [id, { digest: digests.get(id) ?? '', turns }];
        }),
      ),
    count: () => slots.size,
    clear() {
      for (const held of [slots, digests, byNode, names, numbers]) held.clear();
      rows.length = 0;
      kinds.fill(0);
      Object.assign(ofKind, { node: 0, turn: 0, fact: 0 });
    },
  };
}
