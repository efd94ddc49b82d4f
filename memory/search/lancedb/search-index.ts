import { appendFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Table as ArrowTable, RecordBatch } from 'apache-arrow';
import { CometError, indexError, type Problem } from '../../../common/errors.ts';
import { ensureDir, readFileIfPresent } from '../../../common/files.ts';
import { LruMap, memoize } from '../../../common/map.ts';
import type { Embedder } from '../../embeddings/embedder.ts';
import { createMeanVector } from '../../embeddings/vectors.ts';
import { entityTokens, SCRIPT_DIMENSIONS, uniqueTokens } from '../../text/tokenizer.ts';
import {
  FACT_LANES,
  type Hit,
  type IndexEntry,
  type IndexFilter,
  type IndexRow,
  type Lane,
  type LaneScore,
  type SearchIndex,
  type TurnWords,
} from '../search-index.ts';
import {
  FORMAT,
  findRows,
  getKey,
  getRowIds,
  isIn,
  type Kind,
  type LaneRows,
  openTables,
  quoted,
  type RowTable,
  SHAPES,
  type Tables,
} from './table.ts';
import { type CountedRow, createTermCounts, type Scope, type TermCounts } from './term-counts.ts';
import { countedRows, createIndexWriter, type IndexWriter, type IndexWriterDeps } from './writer.ts';

export interface LanceIndexOptions {
  readonly dir: string;
  readonly embedder: Embedder;
  /** Milliseconds since the epoch; only how long old versions stay depends on it. */
  readonly now: () => number;
  readonly rowsForVectorIndex?: number;
  readonly report: (problem: Problem) => void;
  readonly unembedded?: (error: unknown) => void;
}

export interface OpenedIndex {
  readonly index: SearchIndex;
  /** The index is empty; the caller must fill it from the files. */
  readonly rebuilt: boolean;
  /** Why, '' when it was not. A directory that could not be read stays beside it as `<dir>.damaged`. */
  readonly reason: string;
}

/** Present when a read or write failed: the next start rebuilds the index. */
const DOUBT = 'REBUILD';
/** Says which format and embedder the tables were written with. */
const MADE_BY = 'made-by.json';
/** Projects with rows that were deleted and may still be on disk, a key a line. */
const DIRTY = 'dirty';
/** Nodes whose turns are taken out and not yet put back, an id a line. */
const UNFINISHED = 'unfinished';
/** Lanes of nodes give no more hits. */
const NODE_LIMIT = 60;
/** Of a table. */
const KEPT_ROWS = 4_096;
const CACHED_CHARS = 600_000;
const TEXTS = ['turn_id', 'text', 'origin'];
/** More terms slow full text down and add little. */
const MAX_TERMS = 48;

const LANES: Readonly<Record<Lane, { readonly kind: Kind; readonly column: string }>> = {
  raw: { kind: 'turn', column: 'tokens' },
  window: { kind: 'turn', column: 'window' },
  entity: { kind: 'turn', column: 'tokens' },
  meaning: { kind: 'turn', column: 'vector' },
  fact: { kind: 'fact', column: 'tokens' },
  factMeaning: { kind: 'fact', column: 'vector' },
  fts: { kind: 'node', column: 'tokens' },
  trigger: { kind: 'node', column: 'trigger' },
  summary: { kind: 'node', column: 'vector' },
};

/** Opens or creates the index. What cannot be read is set aside, never repaired. @throws CometError `index_failed` */
export async function openLanceIndex(options: LanceIndexOptions): Promise<OpenedIndex> {
  try {
    await ensureDir(options.dir);
    const opened = await openSound(options);
    if (typeof opened !== 'string') return { index: indexOn(options, opened), rebuilt: false, reason: '' };
    await writeFile(path.join(options.dir, MADE_BY), madeBy(options.embedder), { mode: 0o600 });
    const tables = await openTables(getPlace(options));
    const sound = { tables, projectByNode: new Map(), dirty: new Set<string>(), unfinished: new Set<string>() };
    return { index: indexOn(options, sound), rebuilt: true, reason: opened };
  } catch (error) {
    throw indexError('the index cannot be opened; check space and permissions', error);
  }
}

type Sound = Pick<IndexWriterDeps, 'tables' | 'projectByNode' | 'dirty' | 'unfinished'>;

function getPlace({ dir, embedder, rowsForVectorIndex }: LanceIndexOptions): Parameters<typeof openTables>[0] {
  return { dir, dimensions: embedder.dimensions, rowsForVectorIndex };
}

const madeBy = ({ id, dimensions }: Embedder): string => JSON.stringify({ format: FORMAT, embedder: id, dimensions });

/** @returns the tables, or why the directory is empty now */
async function openSound(options: LanceIndexOptions): Promise<Sound | string> {
  const { dir, embedder } = options;
  try {
    if ((await readFileIfPresent(path.join(dir, DOUBT))) !== null) throw new Error('an earlier run could not use it');
    const writtenBy = await readFileIfPresent(path.join(dir, MADE_BY));
    if (writtenBy !== madeBy(embedder)) {
      await rm(dir, { recursive: true, force: true });
      await ensureDir(dir);
      return writtenBy === null ? 'new' : `made by another comet-cc or embedder: ${writtenBy}`;
    }
    const tables = await openTables(getPlace(options));
    const projectByNode = new Map<string, string>();
    for (const key of tables.keys()) {
      for (const kind of ['turn', 'node', 'fact'] as const) await probe(tables, key, kind, embedder.dimensions);
      for await (const { nodeId } of nodesAndTurns(tables, key)) projectByNode.set(nodeId, key);
    }
    const readLines = async (name: string) => new Set(splitLines(await readFileIfPresent(path.join(dir, name))));
    return { tables, projectByNode, dirty: await readLines(DIRTY), unfinished: await readLines(UNFINISHED) };
  } catch (error) {
    await rm(`${dir}.damaged`, { recursive: true, force: true });
    await rename(dir, `${dir}.damaged`);
    await ensureDir(dir);
    return `could not be read: ${(error as Error).message.split('\n')[0]}`;
  }
}

const splitLines = (text: string | null): string[] => text?.split('\n').filter(Boolean) ?? [];

/** Reads a little of every index and vector column, so that damage shows when the index opens. */
async function probe(tables: Tables, key: string, kind: Kind, dimensions: number): Promise<void> {
  const table = await tables.find(key, kind);
  if (table === null) return;
  const vector = new Float32Array(dimensions).fill(1 / Math.sqrt(dimensions));
  const query = { limit: 1, where: undefined };
  await Promise.all([
    ...SHAPES[kind].words.map((column) => table.matching(column, ['probe'], query)),
    table.nearest('vector', vector, query),
    table.nearest('script_vector', new Float32Array(SCRIPT_DIMENSIONS).fill(1), query),
  ]);
}

async function* nodesAndTurns(tables: Tables, key: string) {
  const columns = [
    ['turn', 'turn_id'],
    ['node', 'digest'],
  ] as const;
  for (const [kind, column] of columns) {
    const table = await tables.find(key, kind);
    for await (const batch of table?.read(['node_id', 'session_id', column], undefined) ?? []) {
      const [ids, sessions, values] = ['node_id', 'session_id', column].map((name) => batch.getChild(name));
      for (let at = 0; at < batch.numRows; at += 1) {
        const value = values?.get(at) as string;
        const shared = { nodeId: ids?.get(at) as string, sessionId: sessions?.get(at) as string };
        yield { ...shared, ...(kind === 'turn' ? { turnId: value } : { digest: value }) };
      }
    }
  }
}

interface State extends Pick<LanceIndexOptions, 'dir' | 'embedder'>, Sound {
  readonly counts: TermCounts;
  /** By turn; consecutive prompts read the same ones. */
  readonly texts: LruMap<string, TurnWords>;
  readonly mean: ReturnType<typeof createMeanVector>;
  /** Searches that run: a table that is being read is not dropped. */
  readonly reading: Set<Promise<unknown>>;
  readonly writer: IndexWriter;
  closed: boolean;
}

function indexOn({ dir, embedder, now, report, unembedded = () => {} }: LanceIndexOptions, sound: Sound): SearchIndex {
  const { tables, unfinished } = sound;
  const at = (name: string): string => path.join(dir, name);
  const counts = createTermCounts();
  const reading = new Set<Promise<unknown>>();
  const writer = createIndexWriter({
    ...{ ...sound, embedder, counts, now, unembedded },
    keepDirty: (key) =>
      key === null ? rm(at(DIRTY), { force: true }) : appendFile(at(DIRTY), `${key}\n`, { mode: 0o600 }),
    keepUnfinished: () =>
      unfinished.size === 0
        ? rm(at(UNFINISHED), { force: true })
        : writeFile(at(UNFINISHED), [...unfinished].join('\n'), { mode: 0o600 }),
    searchesSettled: () => Promise.allSettled(reading),
    report: (message) => {
      void doubt(dir);
      report({ file: dir, message: `${message}; it is rebuilt at the next start` });
    },
  });
  const mean = createMeanVector((most) => sample(tables, most));
  const texts = new LruMap<string, TurnWords>(CACHED_CHARS, ({ text }) => text.length);
  const state: State = { ...sound, dir, embedder, counts, texts, mean, reading, writer, closed: false };
  /** Forgets texts before, so that none stays that is taken away, and after, as a search may have read it meanwhile. */
  const changing = async (forget: () => void, write: () => Promise<void>): Promise<void> => {
    forget();
    await write().finally(forget);
  };
  const forgetRows = (rows: readonly IndexRow[]) => () => {
    for (const { turnId } of rows) texts.delete(turnId);
  };
  const forgetAll = (): void => texts.clear();
  return {
    embedderId: () => embedder.id,
    put: (rows) => guarded(state, 'written', () => changing(forgetRows(rows), () => writer.put(rows))),
    remove: (nodeIds) => guarded(state, 'written', () => changing(forgetAll, () => writer.remove(nodeIds))),
    search: (...query) => guarded(state, 'read', () => search(state, ...query)),
    turnTexts: (nodeIds, turnIds) => guarded(state, 'read', () => tracked(state, turnTexts(state, nodeIds, turnIds))),
    termWeights: (tokens, filter) =>
      guarded(state, 'read', async () => (await countFrequencies(state, filter)).ofTerms(tokens)),
    entries: () => guarded(state, 'read', () => tracked(state, findEntries(sound))),
    size: () => guarded(state, 'read', () => tracked(state, getSize(sound))),
    async optimize() {
      await rm(`${dir}.damaged`, { recursive: true, force: true });
      await guarded(state, 'rewritten', () => writer.optimize());
    },
    rest: () => guarded(state, 'reopened', () => writer.alone(tables.reopen)),
    clear: () =>
      guarded(state, 'cleared', async () => {
        await changing(forgetAll, () => writer.clear());
        // Somebody may have removed the folder.
        await ensureDir(dir);
        await writeFile(at(MADE_BY), madeBy(embedder), { mode: 0o600 });
        await rm(at(DOUBT), { force: true });
      }),
    async close() {
      if (state.closed) return;
      state.closed = true;
      await writer.close();
      tables.close();
    },
  };
}

/** Where not even this can be written, the next failure tries again. */
function doubt(dir: string): Promise<void> {
  return writeFile(path.join(dir, DOUBT), '', { mode: 0o600 }).catch(() => undefined);
}

async function guarded<T>({ closed, dir }: State, what: string, work: () => Promise<T>): Promise<T> {
  if (closed) throw indexError('the index is closed');
  try {
    return await work();
  } catch (error) {
    if (error instanceof CometError) throw error;
    await doubt(dir);
    const message = `the index cannot be ${what}`;
    if (what === 'read') throw new CometError('index_unreadable', `${message}; it is rebuilt`, { cause: error });
    throw indexError(`${message}; it is rebuilt at the next start`, error);
  }
}

async function tracked<T>({ reading }: State, read: Promise<T>): Promise<T> {
  reading.add(read);
  try {
    return await read;
  } finally {
    reading.delete(read);
  }
}

/** Counting a scope for the first time reads all of it, so nothing may be written meanwhile. */
function countFrequencies({ tables, counts, writer }: State, { project, ...rest }: IndexFilter) {
  const filter = project === undefined ? rest : { ...rest, project: getKey(project) };
  const count = (): Promise<Scope> => counts.in(filter, () => scopeRows(tables, filter));
  return counts.has(filter) ? count() : writer.alone(count);
}

async function* scopeRows(tables: Tables, { project, sessionId }: IndexFilter): AsyncGenerator<CountedRow> {
  const where = sessionIs(sessionId);
  for (const key of project === undefined ? tables.keys() : [project]) {
    for (const kind of ['turn', 'node'] as const) {
      const table = await tables.find(key, kind);
      if (table !== null) for await (const row of countedRows(table, kind, where)) yield { ...row, project: key };
    }
  }
}

async function search(state: State, ...[query, filter, limit, lanes]: Parameters<SearchIndex['search']>) {
  const { embedder, mean, projectByNode, tables } = state;
  const frequencies = await countFrequencies(state, filter);
  const terms = { own: rarest(uniqueTokens(query), frequencies), named: entityTokens(query) };
  const { vector, comparedWith } = await embedder.embedQuery(query, {
    pieceWeights: frequencies.ofPieces,
    mean: () => mean(projectByNode.size),
  });
  const vectorColumn = comparedWith === 'scriptVector' ? 'script_vector' : 'vector';
  if (vector.length !== (comparedWith === 'scriptVector' ? SCRIPT_DIMENSIONS : embedder.dimensions))
    throw indexError(`the embedder ${embedder.id} must give vectors of ${embedder.dimensions}`);
  const isEmbedded = vector.some((value) => value !== 0);
  const where = sessionIs(filter.sessionId);

  async function ask(lane: Lane, key: string): Promise<LaneResult[]> {
    const { kind, column } = LANES[lane];
    const table = await tables.find(key, kind);
    const isVector = column === 'vector';
    const words = lane === 'entity' ? terms.named : terms.own;
    if (table === null || (isVector ? !isEmbedded : words.length === 0)) return [];
    const searchOptions = { limit: kind === 'node' ? Math.min(limit, NODE_LIMIT) : limit, where };
    const rows = isVector
      ? await table.nearest(vectorColumn, vector, searchOptions)
      : await table.matching(column, words, searchOptions);
    return [{ lane, kind, table, rows }];
  }

  const keys = filter.project === undefined ? tables.keys() : [getKey(filter.project)];
  const answers = Promise.all(keys.flatMap((key) => lanes.map((lane) => ask(lane, key))));
  const hits = answers.then((results) => joinHits(results.flat(), limit));
  return tracked(state, hits);
}

async function turnTexts(
  { tables, projectByNode, texts }: State,
  nodeIds: readonly string[],
  turnIds: readonly string[],
): Promise<ReadonlyMap<string, TurnWords>> {
  const found = new Map(
    turnIds.flatMap((turnId) => {
      const words = texts.get(turnId);
      return words === undefined ? [] : [[turnId, words] as const];
    }),
  );
  const missing = turnIds.filter((turnId) => !found.has(turnId));
  if (missing.length === 0) return found;
  const add = (rows: ArrowTable | RecordBatch): void => {
    for (const { turn_id, text, origin } of findRows<{ readonly turn_id: string } & TurnWords>(rows)) {
      const words = { text, origin };
      found.set(turn_id, words);
      texts.set(turn_id, words);
    }
  };
  for (const key of new Set(nodeIds.flatMap((nodeId) => projectByNode.get(nodeId) ?? []))) {
    const table = await tables.find(key, 'turn');
    if (table === null) continue;
    // Rows are taken faster than found.
    const isMissing = ({ turnId }: HitRow): boolean => missing.includes(turnId ?? '');
    const rowIds = [...getHitRows(table)].flatMap(([rowId, row]) => (isMissing(row) ? [rowId] : []));
    if (rowIds.length > 0) add(await table.take(rowIds, TEXTS));
    const others = missing.filter((turnId) => !found.has(turnId));
    if (others.length > 0) for await (const batch of table.read(TEXTS, isIn('turn_id', others))) add(batch);
  }
  return found;
}

async function findEntries({ tables, unfinished }: Sound): Promise<ReadonlyMap<string, IndexEntry>> {
  const nodes = new Map<string, { digest: string; sessionId: string; turns: string[] }>();
  for (const key of tables.keys()) {
    for await (const row of nodesAndTurns(tables, key)) {
      const entry = nodes.get(row.nodeId) ?? { digest: '', sessionId: row.sessionId, turns: [] };
      nodes.set(row.nodeId, entry);
      if ('digest' in row) entry.digest = unfinished.has(row.nodeId) ? '' : row.digest;
      else entry.turns.push(row.turnId);
    }
  }
  return nodes;
}

async function getSize({ tables, projectByNode }: Sound): Promise<{ readonly nodes: number; readonly rows: number }> {
  let rows = 0;
  for (const key of tables.keys()) {
    for (const kind of Object.keys(SHAPES) as Kind[]) rows += (await (await tables.find(key, kind))?.count()) ?? 0;
  }
  return { nodes: projectByNode.size, rows };
}

function rarest(tokens: readonly string[], { ofTerms }: Scope): readonly string[] {
  if (tokens.length <= MAX_TERMS) return tokens;
  const sorted = [...ofTerms(tokens)].sort(([, one], [, other]) => other - one);
  return sorted.slice(0, MAX_TERMS).map(([token]) => token);
}

function sessionIs(sessionId: string | undefined): string | undefined {
  return sessionId === undefined ? undefined : `session_id = ${quoted(sessionId)}`;
}

async function sample(tables: Tables, most: number): Promise<Float32Array[]> {
  const vectors: Float32Array[] = [];
  for (const key of tables.keys()) {
    const table = await tables.find(key, 'turn');
    const rows = table?.rows<{ readonly vector: Iterable<number> }>(['vector'], 'vector IS NOT NULL');
    for await (const { vector } of rows ?? []) {
      if (vectors.length === most) return vectors;
      vectors.push(Float32Array.from(vector));
    }
  }
  return vectors;
}

type OpenHit = Hit & { readonly lanes: Partial<Record<Lane, LaneScore>> };

/** A row that a lane found. A fact makes hits of its turns. */
interface FoundNode {
  readonly hit: OpenHit;
  readonly sources: readonly string[];
}

interface Scored {
  readonly found: FoundNode;
  readonly score: number;
}

export interface LaneResult {
  readonly lane: Lane;
  readonly kind: Kind;
  readonly table: RowTable;
  readonly rows: LaneRows;
}

/** One hit for each turn and node that lanes found. Rows that several lanes found are read once. */
export async function joinHits(results: readonly LaneResult[], limit: number): Promise<Hit[]> {
  const foundRows = await readRows(results);
  const lanes = new Map<Lane, Scored[]>();
  for (const { lane, table, rows } of results) {
    const scored = lanes.get(lane) ?? [];
    lanes.set(lane, scored);
    for (const [at, rowId] of rows.rowIds.entries()) {
      const row = foundRows.get(table)?.get(rowId);
      const score = rows.scores[at] as number;
      if (row !== undefined && score > 0) scored.push({ found: row, score });
    }
  }
  const best = [...lanes].map(([lane, scored]) => {
    return [lane, scored.sort((one, other) => other.score - one.score).slice(0, limit)] as const;
  });
  const hits: OpenHit[] = [];
  for (const [lane, scored] of best.filter(([lane]) => !isOfFacts(lane))) {
    for (const [at, { found, score }] of scored.entries()) {
      if (Object.keys(found.hit.lanes).length === 0) hits.push(found.hit);
      found.hit.lanes[lane] = { rank: at + 1, score };
    }
  }
  const facts = best.filter(([lane]) => isOfFacts(lane));
  if (facts.length > 0) addFacts(hits, facts);
  return hits;
}

type HitRow = Omit<FoundNode['hit'], 'lanes'> & Pick<FoundNode, 'sources'>;

/** Row ids are not used again, so what was read of one stays. */
const getHitRows = memoize((_: RowTable) => new LruMap<number, HitRow>(KEPT_ROWS));

async function readRows(results: readonly LaneResult[]): Promise<Map<RowTable, Map<number, FoundNode>>> {
  const wanted = new Map<RowTable, { readonly kind: Kind; readonly rowIds: Set<number> }>();
  for (const { table, kind, rows } of results) {
    const { rowIds } = wanted.get(table) ?? { rowIds: new Set<number>() };
    for (const rowId of rows.rowIds) rowIds.add(rowId);
    wanted.set(table, { kind, rowIds });
  }
  const read = [...wanted].map(async ([table, { kind, rowIds }]) => {
    const known = getHitRows(table);
    const found = new Map<number, FoundNode>();
    for (const rowId of rowIds) {
      const row = known.get(rowId);
      if (row !== undefined) found.set(rowId, toFound(row));
    }
    // In their order, so that what lies together is read together.
    const missing = [...rowIds].filter((rowId) => !found.has(rowId)).sort((one, other) => one - other);
    const rows = missing.length === 0 ? [] : toHitRows(kind, await table.take(missing, SHAPES[kind].hit));
    for (const [rowId, row] of rows) {
      known.set(rowId, row);
      found.set(rowId, toFound(row));
    }
    return [table, found] as const;
  });
  return new Map(await Promise.all(read));
}

const toFound = ({ sources, ...hit }: HitRow): FoundNode => ({ hit: { ...hit, lanes: {} }, sources });

function toHitRows(kind: Kind, rows: ArrowTable): (readonly [rowId: number, row: HitRow])[] {
  const column = (name: string) => rows.getChild(name);
  const [nodeIds, times] = [column('node_id'), column('created_at_ms')];
  const [turnIds, places, timed, sources] = [column('turn_id'), column('place'), column('timed'), column('sources')];
  return getRowIds(rows).map((rowId, at) => {
    const place = (places?.get(at) as number | undefined) ?? -1;
    const row: HitRow = {
      nodeId: nodeIds?.get(at) as string,
      turnId: kind === 'turn' ? (turnIds?.get(at) as string) : null,
      atMs: times?.get(at) as number,
      tellsTime: (timed?.get(at) as boolean | undefined) ?? false,
      place: place < 0 ? null : place,
      sources: kind === 'fact' ? splitLines(sources?.get(at) as string) : [],
    };
    return [rowId, row];
  });
}

const isOfFacts = (lane: Lane): boolean => (FACT_LANES as readonly Lane[]).includes(lane);

/** A fact speaks for its turns wherever other lanes found them. */
function addFacts(hits: OpenHit[], lanes: readonly (readonly [Lane, readonly Scored[]])[]): void {
  const byTurn = new Map<string, OpenHit[]>();
  for (const hit of hits) if (hit.turnId !== null) byTurn.set(hit.turnId, [...(byTurn.get(hit.turnId) ?? []), hit]);
  for (const [lane, scored] of lanes) {
    for (const [at, { found, score }] of scored.entries()) {
      for (const turnId of found.sources) {
        let turnHit = byTurn.get(turnId);
        if (turnHit === undefined) {
          turnHit = [{ ...found.hit, turnId, lanes: {} }];
          byTurn.set(turnId, turnHit);
          hits.push(...turnHit);
        }
        for (const hit of turnHit) hit.lanes[lane] ??= { rank: at + 1, score };
      }
    }
  }
}
