import { grown } from './grow-array.ts';
import type { FoundRow, IndexEntry, IndexFilter, RowReader } from './node-index.ts';
import { createRowIds } from './row-ids.ts';
import { createTextIds } from './string-interner.ts';

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
const REMEMBERED = 20_000;

export function createRowBook(): RowBook {
  /** Projects, sessions, nodes and ids of turns, each once; 0 is none of them. */
  const names = createTextIds();
  names.of('');
  const rowIds = createRowIds(names);
  /** Those that were asked for lately. */
  const remembered = new Map<number, string>();
  let next = 0;
  const times: number[] = [];
  const columns = {
    marks: new Uint32Array(1_024),
    projects: new Uint32Array(1_024),
    sessions: new Uint32Array(1_024),
    nodes: new Uint32Array(1_024),
    turns: new Uint32Array(1_024),
    digests: new Uint32Array(1_024),
    /** The row of the same node that came next, plus one; 0 for none. */
    siblings: new Uint32Array(1_024),
    /** Where a row's list begins in `listed`, and how many of it are said before; the sources follow up to the next row's. */
    lists: new Uint32Array(1_024),
    before: new Uint32Array(1_024),
  };
  /** By node: its first row, plus one; 0 for none. */
  let firsts = new Uint32Array(1_024);
  let listed = new Uint32Array(1_024);
  let free = 0;
  const ofKind = { node: 0, turn: 0, fact: 0 };

  function nameOf(number: number): string {
    const known = remembered.get(number);
    if (known !== undefined) return known;
    const name = names.text(number);
    if (remembered.size === REMEMBERED) remembered.clear();
    remembered.set(number, name);
    return name;
  }

  function* slotsOf(node: number): Generator<number> {
    for (let held = firsts[node] ?? 0; held !== 0; held = columns.siblings[held - 1] as number) yield held - 1;
  }

  function append(node: number, slot: number): void {
    firsts = grown(firsts, node);
    let last = -1;
    for (const each of slotsOf(node)) last = each;
    if (last < 0) firsts[node] = slot + 1;
    else columns.siblings[last] = slot + 1;
  }

  function unlink(node: number, slot: number): void {
    const after = columns.siblings[slot] as number;
    columns.siblings[slot] = 0;
    if (firsts[node] === slot + 1) firsts[node] = after;
    for (const each of slotsOf(node)) if (columns.siblings[each] === slot + 1) columns.siblings[each] = after;
  }

  /** Nodes that have rows. */
  const nodes = (): number[] =>
    Array.from(firsts.subarray(0, names.size()).keys()).filter((node) => firsts[node] !== 0);
  const kindAt = (slot: number): Kind | undefined => KINDS[((columns.marks[slot] ?? 0) & KIND_MASK) - 1];
  const listEnd = (slot: number): number => (slot + 1 < next ? (columns.lists[slot + 1] as number) : free);

  function list(numbered: readonly string[]): void {
    for (const name of numbered) {
      listed = grown(listed, free);
      listed[free++] = names.of(name);
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
      row_id: rowIds.idOf(slot),
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
    const slot = rowIds.find(rowId);
    return slot === undefined ? undefined : at(slot);
  }

  function remove(rowId: string): void {
    const slot = rowIds.find(rowId);
    if (slot === undefined) return;
    ofKind[kindAt(slot) as Kind] -= 1;
    columns.marks[slot] = 0;
    rowIds.remove(slot);
    unlink(columns.nodes[slot] as number, slot);
  }

  return {
    put({ row_id, kind, node_id, session_id, project, turn, origin, created_at_ms, before, sources, timed, digest }) {
      remove(row_id);
      const slot = next++;
      for (const name of Object.keys(columns) as (keyof typeof columns)[]) columns[name] = grown(columns[name], slot);
      const { marks, projects, sessions, nodes: ofNodes, turns, lists, before: counts } = columns;
      marks[slot] = (KINDS.indexOf(kind) + 1) | (ORIGINS.indexOf(origin) << ORIGIN_SHIFT) | (timed ? TIMED : 0);
      projects[slot] = names.of(project);
      sessions[slot] = names.of(session_id);
      const node = names.of(node_id);
      ofNodes[slot] = node;
      turns[slot] = names.of(turn);
      columns.digests[slot] = names.of(digest);
      columns.siblings[slot] = 0;
      times[slot] = created_at_ms;
      lists[slot] = free;
      counts[slot] = before.length;
      list(before);
      list(sources);
      ofKind[kind] += 1;
      append(node, slot);
      rowIds.put(slot, { row_id, node_id, turn }, { node, turn: turns[slot] as number });
      return slot;
    },
    remove,
    get,
    slotOf: rowIds.find,
    at,
    kindAt,
    nameOf,
    numberOf: (name) => names.find(name) ?? 0,
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
      const inProject = project === undefined ? null : (names.find(project) ?? -1);
      const inSession = sessionId === undefined ? null : (names.find(sessionId) ?? -1);
      return (slot) =>
        (columns.marks[slot] ?? 0) !== 0 &&
        (inProject === null || columns.projects[slot] === inProject) &&
        (inSession === null || columns.sessions[slot] === inSession);
    },
    holds: (kind) => ofKind[kind] > 0,
    rowsOf: (nodeId) => [...slotsOf(names.find(nodeId) ?? -1)].map(rowIds.idOf),
    nodeIds: () => new Set(nodes().map(names.text)),
    entries() {
      const entries = new Map<string, IndexEntry>();
      for (const node of nodes()) {
        let digest = 0;
        const turns: string[] = [];
        for (const slot of slotsOf(node)) {
          if (kindAt(slot) === 'node') digest = columns.digests[slot] as number;
          if (columns.turns[slot] !== 0) turns.push(names.text(columns.turns[slot] as number));
        }
        entries.set(names.text(node), { digest: names.text(digest), turns });
      }
      return entries;
    },
    count: rowIds.count,
    clear() {
      for (const held of [names, rowIds, remembered]) held.clear();
      names.of('');
      firsts.fill(0);
      next = 0;
      free = 0;
      columns.marks.fill(0);
      Object.assign(ofKind, { node: 0, turn: 0, fact: 0 });
    },
  };
}
