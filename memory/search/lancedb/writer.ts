import { createMutex } from '../../../common/async.ts';
import { CometError } from '../../../common/errors.ts';
import { grouped, slices } from '../../../common/map.ts';
import type { Embedder, Embedding } from '../../embeddings/embedder.ts';
import { getParts } from '../../model/turn.ts';
import { tokenize } from '../../text/tokenizer.ts';
import { tellsTime } from '../ranking.ts';
import type { IndexRow } from '../search-index.ts';
import { getWindows, type WindowedTurn } from '../turn-context.ts';
import { getKey, isIn, type Kind, quoted, type RowTable, SHAPES, type TableRecord, type Tables } from './table.ts';
import type { CountedRow, TermCounts } from './term-counts.ts';

/** Beyond this in a commit nothing gets faster, and the embedder holds that many texts. */
const ROWS_PER_COMMIT = 500;
const MAX_WAITING_ROWS = 5_000;
/** A search reads the rows of each commit since the last optimization one by one. */
const COMMITS_PER_OPTIMIZE = 16;
/** Once nothing was written for so long, fewer commits are optimized too; sooner where many rows came at once. */
const REST_MS = 30_000;
const BULK_REST_MS = 1_000;
const BULK_ROWS = 500;
const COMMITS_PER_REOPEN = 128;
/** Whole tool outputs of megabytes would only blur full text. */
const MAX_TEXT_CHARS = 100_000;

export type IndexWriter = ReturnType<typeof createIndexWriter>;

export interface IndexWriterDeps {
  readonly tables: Tables;
  readonly embedder: Embedder;
  readonly counts: TermCounts;
  /** Keys of the projects of all indexed nodes. */
  readonly projectByNode: Map<string, string>;
  /** Keys of projects with rows that were deleted and may still be on disk. */
  readonly dirty: Set<string>;
  /** Adds a key to what the next run has as `dirty`; null for none any more. */
  readonly keepDirty: (key: string | null) => Promise<void>;
  /** Nodes whose turns are taken out and not yet put back: the next run writes them again. */
  readonly unfinished: Set<string>;
  readonly keepUnfinished: () => Promise<void>;
  readonly now: () => number;
  /** Called when optimizing failed: searches only get slower. */
  readonly report: (message: string) => void;
  /** Called when rows were written without vectors: words find them, and the next start embeds them. */
  readonly unembedded: (error: unknown) => void;
  readonly searchesSettled: () => Promise<unknown>;
}

interface Change {
  readonly remove: readonly string[];
  readonly rows: readonly IndexRow[];
}

/** What a changed turn may change in the windows of others. */
interface HeldTurn extends WindowedTurn {
  readonly isNew: boolean;
}

type HeldRow = Pick<HeldTurn, 'place' | 'tokens'> & { readonly node_id: string; readonly turn_id: string };

type State = ReturnType<typeof newState>;

function newState(deps: IndexWriterDeps) {
  return {
    ...deps,
    alone: createMutex(),
    waiting: [] as (Change & { readonly resolve: () => void; readonly reject: (error: unknown) => void })[],
    waitingRows: 0,
    commitsSinceReopen: 0,
    resting: undefined as NodeJS.Timeout | undefined,
    closed: false,
  };
}

/** Commits one after the other; changes that wait share a commit. */
export function createIndexWriter(deps: IndexWriterDeps) {
  const { tables, counts, projectByNode } = deps;
  const state = newState(deps);
  // What an earlier run left unoptimized.
  void state.alone(() => maintain(state));
  return {
    /** @throws CometError `index_failed` when too much is waiting; the files still hold everything */
    put(rows: readonly IndexRow[]): Promise<void> {
      if (rows.length === 0) return Promise.resolve();
      if (state.waitingRows > 0 && state.waitingRows + rows.length > MAX_WAITING_ROWS)
        return Promise.reject(new CometError('index_failed', 'too many rows wait for the index; it will be rebuilt'));
      return enqueue(state, { remove: [...new Set(rows.map(({ nodeId }) => nodeId))], rows });
    },
    remove: (nodeIds: readonly string[]): Promise<void> => enqueue(state, { remove: nodeIds, rows: [] }),
    clear: () =>
      state.alone(async () => {
        for (const key of tables.keys()) await tables.drop(key);
        // LanceDB would read new tables through what it cached of old ones of the same names.
        await tables.reopen();
        projectByNode.clear();
        counts.clear();
        await setClean(state);
      }),
    optimize: () => state.alone(() => optimizeAll(state)),
    /** Runs `work` while nothing is written. */
    alone: state.alone,
    /** Resolves when nothing is being written; never rejects. */
    async close(): Promise<void> {
      state.closed = true;
      clearTimeout(state.resting);
      await state.alone(async () => {});
    },
  };
}

function enqueue(state: State, change: Change): Promise<void> {
  state.waitingRows += change.rows.length;
  return new Promise((resolve, reject) => {
    state.waiting.push({ ...change, resolve, reject });
    if (state.waiting.length === 1) void state.alone(() => writeWaiting(state));
  });
}

async function writeWaiting(state: State): Promise<void> {
  const batch = state.waiting;
  state.waiting = [];
  try {
    await write(state, joinChanges(batch));
    await maintain(state);
    for (const { resolve } of batch) resolve();
  } catch (error) {
    for (const { reject } of batch) reject(error);
  } finally {
    state.waitingRows -= batch.reduce((sum, { rows }) => sum + rows.length, 0);
  }
}

/** Called before anything is deleted. */
async function setDirty({ dirty, keepDirty }: State, key: string): Promise<void> {
  if (dirty.has(key)) return;
  await keepDirty(key);
  dirty.add(key);
}

async function setClean({ dirty, keepDirty }: State): Promise<void> {
  await keepDirty(null);
  dirty.clear();
}

async function optimizeAll(state: State): Promise<void> {
  const { dirty, tables, searchesSettled, now } = state;
  for (const key of dirty) {
    for (const kind of Object.keys(SHAPES) as Kind[]) await tables.rewrite(key, kind, searchesSettled);
  }
  await setClean(state);
  for (const table of tables.opened()) if (table.loose().commits > 0) await table.optimize(now());
}

/** A failure here costs speed, never rows. */
async function maintain(state: State, least = COMMITS_PER_OPTIMIZE): Promise<void> {
  const { tables, now, report } = state;
  clearTimeout(state.resting);
  try {
    for (const table of tables.opened()) if (table.loose().commits >= least) await table.optimize(now());
    if (state.commitsSinceReopen >= COMMITS_PER_REOPEN) {
      await tables.reopen();
      state.commitsSinceReopen = 0;
    }
  } catch (error) {
    report(`the index could not be optimized: ${(error as Error).message.split('\n')[0]}`);
  }
  const loose = tables.opened().map((table) => table.loose());
  if (state.closed || !loose.some(({ commits }) => commits > 0)) return;
  const restMs = loose.some(({ rows }) => rows >= BULK_ROWS) ? BULK_REST_MS : REST_MS;
  state.resting = setTimeout(() => void state.alone(() => maintain(state, 1)), restMs).unref();
}

interface ProjectChange {
  readonly key: string;
  readonly removed: readonly string[];
  readonly added: readonly IndexRow[];
  readonly embeddings: ReadonlyMap<IndexRow, Embedding>;
}

async function write(state: State, { remove, rows }: Change): Promise<void> {
  const { projectByNode } = state;
  const embeddings = await embedded(rows, state);
  const indexed = remove.filter((nodeId) => projectByNode.has(nodeId));
  const removed = grouped(indexed, (nodeId) => projectByNode.get(nodeId) as string);
  const added = grouped(rows, (row) => getKey(row.project));
  for (const key of new Set([...removed.keys(), ...added.keys()])) {
    await writeProject(state, { key, removed: removed.get(key) ?? [], added: added.get(key) ?? [], embeddings });
  }
}

/** Rows of nodes come last: their digests say that the rest is written. */
async function writeProject(state: State, change: ProjectChange): Promise<void> {
  const { key, removed, added, embeddings } = change;
  const { projectByNode, counts } = state;
  if (removed.length > 0) await setDirty(state, key);
  await writeTurns(state, change);
  for (const kind of ['fact', 'node'] as const) {
    if (removed.length > 0) await removeRows(state, key, kind, removed);
    const records = added.filter((row) => row.kind === kind).map((row) => getRecord(row, embeddings.get(row)));
    await addRecords(state, key, kind, records);
  }
  for (const nodeId of removed) projectByNode.delete(nodeId);
  for (const { nodeId } of added) projectByNode.set(nodeId, key);
  for (const row of added) {
    const { kind, sessionId } = row;
    if (kind === 'fact') continue;
    const pieces = (kind === 'turn' ? embeddings.get(row)?.pieces : undefined) ?? new Uint16Array(0);
    counts.add({ kind, project: key, sessionId, tokens: getTokens(row), pieces });
  }
}

async function removeRows(state: State, key: string, kind: 'fact' | 'node', nodeIds: readonly string[]): Promise<void> {
  const table = await state.tables.find(key, kind);
  if (table === null) return;
  const where = isIn('node_id', nodeIds);
  if (kind === 'node') await uncount(state, table, kind, key, where);
  await table.remove(where);
  state.commitsSinceReopen += 1;
}

/** Also writes the windows again that hold words of turns that were added or removed. */
async function writeTurns(state: State, { key, removed, added, embeddings }: ProjectChange): Promise<void> {
  const rows = added.filter(({ kind }) => kind === 'turn');
  const { tables, unfinished, keepUnfinished } = state;
  const table = rows.length > 0 ? await tables.findOrCreate(key, 'turn') : await tables.find(key, 'turn');
  if (table === null) return;
  const sessions = new Set(rows.map(({ sessionId }) => sessionId));
  for (const sessionId of await getSessions(table, removed)) sessions.add(sessionId);
  if (sessions.size === 0) return;
  const removedIds = new Set(removed);
  const held = await heldTurns(table, [...sessions]);
  const before = getWindows(held);
  const fresh = new Map(
    rows.map((row): [HeldTurn, IndexRow] => {
      const { nodeId, turnId } = row;
      return [{ nodeId, turnId, place: getPlace(row), tokens: getTokens(row), isNew: true }, row];
    }),
  );
  const after = getWindows([...held.filter(({ nodeId }) => !removedIds.has(nodeId)), ...fresh.keys()]);
  const stale = [...after].filter(([turn, window]) => !turn.isNew && window !== before.get(turn));
  const rewritten = await getRecords(table, stale);
  const deleted = [
    ...(removed.length === 0 ? [] : [isIn('node_id', removed)]),
    ...stale.map(([{ nodeId, turnId }]) => `(node_id = ${quoted(nodeId)} AND turn_id = ${quoted(turnId)})`),
  ];
  if (removed.length > 0) await uncount(state, table, 'turn', key, isIn('node_id', removed));
  if (stale.length > 0) {
    await setDirty(state, key);
    for (const [{ nodeId }] of stale) unfinished.add(nodeId);
    await keepUnfinished();
  }
  if (deleted.length > 0) await table.remove(deleted.join(' OR '));
  const records = [...fresh].map(([turn, row]) => ({
    ...getRecord(row, embeddings.get(row)),
    window: after.get(turn) as string,
  }));
  await addRecords(state, key, 'turn', [...rewritten, ...records]);
  const written = [...stale, ...fresh].filter(([{ nodeId }]) => unfinished.delete(nodeId));
  if (written.length > 0) await keepUnfinished();
}

async function addRecords(state: State, key: string, kind: Kind, records: readonly TableRecord[]): Promise<void> {
  if (records.length === 0) return;
  const table = await state.tables.findOrCreate(key, kind);
  for (const some of slices(records, ROWS_PER_COMMIT)) {
    await table.add(some);
    state.commitsSinceReopen += 1;
  }
}

async function uncount({ counts }: State, table: RowTable, kind: CountedRow['kind'], key: string, where: string) {
  for await (const row of countedRows(table, kind, where)) counts.remove({ ...row, project: key });
}

/** Later changes win: what is removed or put again is not written before. */
function joinChanges(batch: readonly Change[]): Change {
  const removed = new Set<string>();
  let rows: IndexRow[] = [];
  for (const change of batch) {
    const removedIds = new Set(change.remove);
    for (const nodeId of removedIds) removed.add(nodeId);
    rows = [...rows.filter(({ nodeId }) => !removedIds.has(nodeId)), ...change.rows];
  }
  return { remove: [...removed], rows };
}

async function getSessions(table: RowTable, nodeIds: readonly string[]): Promise<string[]> {
  if (nodeIds.length === 0) return [];
  const sessions: string[] = [];
  const rows = table.rows<{ readonly session_id: string }>(['session_id'], isIn('node_id', nodeIds));
  for await (const { session_id } of rows) sessions.push(session_id);
  return sessions;
}

async function heldTurns(table: RowTable, sessionIds: readonly string[]): Promise<HeldTurn[]> {
  const turns: HeldTurn[] = [];
  const rows = table.rows<HeldRow>(['node_id', 'turn_id', 'place', 'tokens'], isIn('session_id', sessionIds));
  for await (const { node_id: nodeId, turn_id: turnId, place, tokens } of rows) {
    turns.push({ nodeId, turnId, place, tokens, isNew: false });
  }
  return turns;
}

/** Whole rows, with other windows. */
async function getRecords(table: RowTable, turns: readonly (readonly [HeldTurn, string])[]): Promise<TableRecord[]> {
  if (turns.length === 0) return [];
  const windows = new Map(turns.map(([{ nodeId, turnId }, window]) => [`${nodeId} ${turnId}`, window]));
  const { texts, words } = SHAPES.turn;
  const columns = [
    ...['node_id', 'session_id', 'origin', 'created_at_ms', 'place', 'timed', 'pieces', 'vector', 'script_vector'],
    ...texts,
    ...words,
  ];
  const records: TableRecord[] = [];
  const turnIds = turns.map(([{ turnId }]) => turnId);
  for await (const row of table.rows<TableRecord>(columns, isIn('turn_id', turnIds))) {
    const window = windows.get(`${row.node_id} ${row.turn_id}`);
    if (window === undefined) continue;
    const record = Object.fromEntries(columns.map((name) => [name, row[name]]));
    const vectors = { vector: getFloats(row.vector), script_vector: getFloats(row.script_vector) };
    records.push({ ...record, ...vectors, window });
  }
  return records;
}

function getFloats(vector: unknown): Float32Array | null {
  return vector === null || vector === undefined ? null : Float32Array.from(vector as Iterable<number>);
}

/** Turns or nodes as they are counted; `project` is left to the caller. */
export async function* countedRows(
  table: RowTable,
  kind: CountedRow['kind'],
  where: string | undefined,
): AsyncGenerator<CountedRow> {
  const columns = ['session_id', 'tokens', ...(kind === 'turn' ? ['pieces'] : [])];
  for await (const batch of table.read(columns, where)) {
    const [sessions, tokens, pieces] = columns.map((name) => batch.getChild(name));
    for (let at = 0; at < batch.numRows; at += 1) {
      yield {
        kind,
        project: '',
        sessionId: sessions?.get(at) as string,
        tokens: tokens?.get(at) as string,
        pieces: new Uint16Array((pieces?.get(at) as Uint8Array | undefined)?.slice().buffer ?? new ArrayBuffer(0)),
      };
    }
  }
}

/** Without its embedding a node's digest is empty, so that the next start writes it again. */
function getRecord(row: IndexRow, embedding: Embedding | undefined): TableRecord {
  const pieces = embedding?.pieces ?? new Uint16Array(0);
  const shared = {
    node_id: row.nodeId,
    session_id: row.sessionId,
    origin: row.origin,
    created_at_ms: row.atMs,
    tokens: getTokens(row),
    vector: embedding?.vector ?? null,
    script_vector: embedding?.scriptVector ?? null,
  };
  switch (row.kind) {
    case 'turn':
      return {
        ...shared,
        turn_id: row.turnId,
        place: getPlace(row),
        text: row.text.slice(0, MAX_TEXT_CHARS),
        timed: tellsTime(row.text),
        pieces: new Uint8Array(pieces.buffer, pieces.byteOffset, pieces.byteLength),
      };
    case 'node':
      return { ...shared, digest: embedding === undefined ? '' : row.digest, trigger: tokenize(row.trigger).join(' ') };
    case 'fact':
      return { ...shared, sources: row.sources.join('\n') };
  }
}

/** A turn without a place has no neighbors. */
const getPlace = ({ place }: IndexRow): number => place ?? -1;

/** Words of tool calls that were not spoken count once each: a call repeated a hundred times says no more. */
function getTokens({ text, origin }: IndexRow): string {
  const parts = getParts(text.slice(0, MAX_TEXT_CHARS), origin);
  const [calls, spoken] = [true, false].map((isCall) =>
    parts.filter(({ by }) => (by === 'call') === isCall).flatMap((part) => tokenize(part.text)),
  ) as [string[], string[]];
  const ids = new Set(spoken);
  return [...spoken, ...new Set(calls.filter((token) => !ids.has(token)))].join(' ');
}

async function embedded(
  rows: readonly IndexRow[],
  { embedder, unembedded }: Pick<IndexWriterDeps, 'embedder' | 'unembedded'>,
): Promise<ReadonlyMap<IndexRow, Embedding>> {
  const vectorsByRow = new Map<IndexRow, Embedding>();
  for (const some of slices(rows, ROWS_PER_COMMIT)) {
    let embeddings: readonly Embedding[];
    try {
      embeddings = await embedder.embed(some.map((row) => row.embedded));
    } catch (error) {
      unembedded(error);
      continue;
    }
    if (embeddings.length !== some.length || embeddings.some(({ vector }) => vector.length !== embedder.dimensions)) {
      // LanceDB would pad a short vector without a word.
      throw new CometError('index_failed', `the embedder ${embedder.id} must give vectors of ${embedder.dimensions}`);
    }
    for (const [nth, row] of some.entries()) vectorsByRow.set(row, embeddings[nth] as Embedding);
  }
  return vectorsByRow;
}
