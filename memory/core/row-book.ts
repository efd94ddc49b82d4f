import type { FoundRow, IndexEntry, IndexFilter, RowReader } from '../ports.ts';
import { grown } from './grown.ts';

/** What is kept of a row beside the table, so that a search need not fetch it. */
export interface BookedRow extends FoundRow {
  readonly digest: string;
}

/** Every row of the index without its texts and vectors, in columns of numbers. Held in memory. */
export interface RowBook extends RowReader {
  /** @returns its slot: a number that it has until it is removed, and no other row ever */
  put(row: BookedRow): number;
  remove(rowId: string): void;
  get(rowId: string): FoundRow | undefined;
  slotOf(rowId: string): number | undefined;
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
const ORIGINS: readonly FoundRow['origin'][] = ['user', 'assistant', 'tool', 'external'];
/** Of `marks`: the kind's place plus one, 0 for none, then the origin's, then whether it is timed. */
const KIND_MASK = 3;
const ORIGIN_SHIFT = 2;
const TIMED = 16;

export function createRowBook(): RowBook {
  const slots = new Map<string, number>();
  const rowIds: string[] = [];
  /** By node, where its own row is there. */
  const digests = new Map<string, string>();
  const byNode = new Map<string, string[]>();
  /** Projects, sessions, nodes and ends of turns, each once; 0 is none of them. */
  const names: string[] = [''];
  const numbers = new Map<string, number>([['', 0]]);
  const times: number[] = [];
  const columns = {
    marks: new Uint32Array(1_024),
    projects: new Uint32Array(1_024),
    sessions: new Uint32Array(1_024),
    nodes: new Uint32Array(1_024),
    turns: new Uint32Array(1_024),
    /** Where a row's list begins in `listed`, and how many of it are said before; the sources follow up to the next row's. */
    lists: new Uint32Array(1_024),
    before: new Uint32Array(1_024),
  };
  let listed = new Uint32Array(1_024);
  let free = 0;
  const ofKind = { node: 0, turn: 0, fact: 0 };

  function numberOf(name: string): number {
    const known = numbers.get(name);
    if (known !== undefined) return known;
    const fresh = names.push(name) - 1;
    numbers.set(name, fresh);
    return fresh;
  }

  const nameOf = (number: number): string => names[number] as string;
  const kindAt = (slot: number): Kind | undefined => KINDS[((columns.marks[slot] ?? 0) & KIND_MASK) - 1];
  const listEnd = (slot: number): number => (slot + 1 < rowIds.length ? (columns.lists[slot + 1] as number) : free);

  function list(numbered: readonly string[]): void {
    for (const name of numbered) {
      listed = grown(listed, free);
      listed[free++] = numberOf(name);
    }
  }

  function at(slot: number): FoundRow | undefined {
    const kind = kindAt(slot);
    if (kind === undefined) return undefined;
    const { marks, projects, sessions, nodes, turns, lists, before } = columns;
    const from = lists[slot] as number;
    const parted = from + (before[slot] as number);
    const namesIn = (start: number, end: number): string[] => Array.from(listed.subarray(start, end), nameOf);
    return {
      row_id: rowIds[slot] as string,
      kind,
      node_id: nameOf(nodes[slot] as number),
      session_id: nameOf(sessions[slot] as number),
      project: nameOf(projects[slot] as number),
      turn: nameOf(turns[slot] as number),
      origin: ORIGINS[((marks[slot] as number) >> ORIGIN_SHIFT) & 3] as FoundRow['origin'],
      created_at_ms: times[slot] as number,
      before: namesIn(from, parted),
      sources: namesIn(parted, listEnd(slot)),
      timed: ((marks[slot] as number) & TIMED) !== 0,
    };
  }

  function get(rowId: string): FoundRow | undefined {
    const slot = slots.get(rowId);
    return slot === undefined ? undefined : at(slot);
  }

  function remove(rowId: string): void {
    const slot = slots.get(rowId);
    if (slot === undefined) return;
    const kind = kindAt(slot) as Kind;
    const nodeId = nameOf(columns.nodes[slot] as number);
    columns.marks[slot] = 0;
    rowIds[slot] = '';
    slots.delete(rowId);
    ofKind[kind] -= 1;
    if (kind === 'node') digests.delete(nodeId);
    const siblings = (byNode.get(nodeId) ?? []).filter((id) => id !== rowId);
    if (siblings.length > 0) byNode.set(nodeId, siblings);
    else byNode.delete(nodeId);
  }

  return {
    put({ row_id, kind, node_id, session_id, project, turn, origin, created_at_ms, before, sources, timed, digest }) {
      remove(row_id);
      const slot = rowIds.push(row_id) - 1;
      slots.set(row_id, slot);
      for (const name of Object.keys(columns) as (keyof typeof columns)[]) columns[name] = grown(columns[name], slot);
      const { marks, projects, sessions, nodes, turns, lists, before: counts } = columns;
      marks[slot] = (KINDS.indexOf(kind) + 1) | (ORIGINS.indexOf(origin) << ORIGIN_SHIFT) | (timed ? TIMED : 0);
      projects[slot] = numberOf(project);
      sessions[slot] = numberOf(session_id);
      nodes[slot] = numberOf(node_id);
      turns[slot] = numberOf(turn);
      times[slot] = created_at_ms;
      lists[slot] = free;
      counts[slot] = before.length;
      list(before);
      list(sources);
      ofKind[kind] += 1;
      const nodeId = nameOf(nodes[slot] as number);
      if (kind === 'node') digests.set(nodeId, digest);
      const siblings = byNode.get(nodeId);
      if (siblings === undefined) byNode.set(nodeId, [row_id]);
      else siblings.push(row_id);
      return slot;
    },
    remove,
    get,
    slotOf: (rowId) => slots.get(rowId),
    at,
    kindAt,
    nameOf,
    numberOf: (name) => numbers.get(name) ?? 0,
    nodeOf: (slot) => columns.nodes[slot] as number,
    turnOf: (slot) => columns.turns[slot] as number,
    beforeOf: (slot, by) =>
      by > (columns.before[slot] as number) ? 0 : (listed[(columns.lists[slot] as number) + by - 1] as number),
    sourceOf(slot, nth) {
      const place = (columns.lists[slot] as number) + (columns.before[slot] as number) + nth;
      return place < listEnd(slot) ? (listed[place] as number) : 0;
    },
    atMs: (slot) => times[slot] as number,
    isTimed: (slot) => ((columns.marks[slot] as number) & TIMED) !== 0,
    fitting({ project, sessionId }) {
      // A text without a number stands nowhere.
      const inProject = project === undefined ? null : (numbers.get(project) ?? -1);
      const inSession = sessionId === undefined ? null : (numbers.get(sessionId) ?? -1);
      return (slot) =>
        (columns.marks[slot] ?? 0) !== 0 &&
        (inProject === null || columns.projects[slot] === inProject) &&
        (inSession === null || columns.sessions[slot] === inSession);
    },
    holds: (kind) => ofKind[kind] > 0,
    rowsOf: (nodeId) => byNode.get(nodeId) ?? [],
    nodeIds: () => new Set(byNode.keys()),
    entries: () =>
      new Map(
        [...byNode].map(([id, ids]) => {
          const turns = ids.map((rowId) => nameOf(columns.turns[slots.get(rowId) as number] as number));
          return [id, { digest: digests.get(id) ?? '', turns: turns.filter((turn) => turn !== '') }];
        }),
      ),
    count: () => slots.size,
    clear() {
      for (const held of [slots, digests, byNode, numbers]) held.clear();
      numbers.set('', 0);
      names.length = 1;
      rowIds.length = 0;
      free = 0;
      columns.marks.fill(0);
      Object.assign(ofKind, { node: 0, turn: 0, fact: 0 });
    },
  };
}
