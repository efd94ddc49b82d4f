import { rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Connection, Table } from '@lancedb/lancedb';
import type { Table as ArrowTable, DataType, Field, RecordBatch, Schema } from 'apache-arrow';
import { sha256 } from '../../../common/text.ts';
import { SCRIPT_DIMENSIONS } from '../../text/tokenizer.ts';
import type { IndexRow } from '../search-index.ts';

/** Not imported: while it loads other modules, Node 20 may leave an import's names undefined; Arrow would load twice. */
const load = createRequire(import.meta.url);
const { connect, Index, MatchQuery, Session } = load('@lancedb/lancedb') as typeof import('@lancedb/lancedb');
const arrow = load('apache-arrow') as typeof import('apache-arrow');

/** Comparing fewer vectors one by one is fast, and exact. */
const ROWS_FOR_VECTOR_INDEX = 5_000;
const VECTOR_INDEX = 'vector_rq';
/** Quantized to a bit for each number: 100,000 vectors take 2 MB, so that all of them stay in the cache. */
const PARTITIONS = 64;
/** Candidates for each row asked for; the quantized distances only choose them. */
const REFINED = 2;
/** Each optimization adds a part to the vector index, and a search looks into all of them. */
const OPTIMIZATIONS_PER_BUILD = 8;
/** Searches that began on an older version have ended by then. */
const OLD_VERSION_MS = 10_000;
const COPIED_AT_ONCE = 1_000;
const TRIES = 5;

export interface LaneQuery {
  readonly limit: number;
  /** SQL; undefined for all rows. */
  readonly where: string | undefined;
}

/** What a lane found, best first. Row ids stay the same when the table is optimized. */
export interface LaneRows {
  readonly rowIds: readonly number[];
  /** BM25, or the cosine. */
  readonly scores: readonly number[];
}

/** Rows of one kind in one project. Errors are LanceDB's own. */
export type RowTable = ReturnType<typeof openTable>;

export interface TablePlace {
  readonly connection: Connection;
  readonly kind: Kind;
  readonly dimensions: number;
  readonly rowsForVectorIndex: number | undefined;
}

async function createRowTable(place: TablePlace, name: string): Promise<RowTable> {
  const table = await place.connection.createEmptyTable(name, getSchema(place.kind, place.dimensions), {
    storageOptions: { new_table_enable_stable_row_ids: 'true' },
  });
  const { words, lookups } = SHAPES[place.kind];
  for (const column of words) await table.createIndex(column, { config: wordsIndex() });
  for (const column of lookups) await table.createIndex(column, { config: Index.btree() });
  return openTable(place, table, 0);
}

async function openRowTable(place: TablePlace, name: string): Promise<RowTable> {
  const table = await place.connection.openTable(name);
  return openTable(place, table, Math.max(0, (await table.stats()).fragmentStats.numFragments - 1));
}

function openTable(place: TablePlace, table: Table, looseCommits: number) {
  const { dimensions, rowsForVectorIndex = ROWS_FOR_VECTOR_INDEX } = place;
  let commits = looseCommits;
  let rows = 0;
  let optimizations = 0;

  async function indexVectors(): Promise<void> {
    if (dimensions % 8 !== 0) return; // Its bits are stored as bytes.
    const isMissing = !(await table.listIndices()).some(({ name }) => name === VECTOR_INDEX);
    if (!isMissing && optimizations < OPTIMIZATIONS_PER_BUILD) return;
    if ((await table.countRows('vector IS NOT NULL')) < rowsForVectorIndex) return;
    const config = Index.ivfRq({ distanceType: 'cosine', numPartitions: PARTITIONS });
    await table.createIndex('vector', { config, name: VECTOR_INDEX, replace: true });
    optimizations = 0;
  }

  function read(columns: readonly string[], where: string | undefined): AsyncIterable<RecordBatch> {
    const query = table.query().select([...columns]);
    return where === undefined ? query : query.where(where);
  }

  return {
    name: table.name,
    async matching(column: string, terms: readonly string[], { limit, where }: LaneQuery): Promise<LaneRows> {
      const best = (most: number): Promise<LaneRows> => {
        const query = table.query().fullTextSearch(new MatchQuery(terms.join(' '), column));
        if (where !== undefined) query.where(where);
        return laneRows(query.select(['_score']).withRowId().limit(most).toArrow());
      };
      const hits = await best(limit);
      const isSorted = hits.scores.every((score, at) => at === 0 || score <= (hits.scores[at - 1] as number));
      if (isSorted) return hits;
      // While no row is indexed, LanceDB gives the first rows that match, unsorted.
      return sorted(hits.rowIds.length < limit ? hits : await best(await table.countRows()), limit);
    },
    nearest(column: string, vector: Float32Array, { limit, where }: LaneQuery): Promise<LaneRows> {
      const query = table.query().nearestTo(vector).column(column).distanceType('cosine');
      query.nprobes(PARTITIONS).refineFactor(REFINED);
      if (where !== undefined) query.where(where);
      return laneRows(query.select(['_distance']).withRowId().limit(limit).toArrow());
    },
    /** These columns and `_rowid` of these rows, as far as they are still there. */
    take(rowIds: readonly number[], columns: readonly string[]): Promise<ArrowTable> {
      return table
        .takeRowIds([...rowIds])
        .select([...columns])
        .withRowId()
        .toArrow();
    },
    read,
    async *rows<T>(columns: readonly string[], where: string | undefined): AsyncGenerator<T> {
      for await (const batch of read(columns, where)) yield* findRows<T>(batch);
    },
    async add(added: readonly TableRecord[] | ArrowTable): Promise<void> {
      await retried(() => table.add(added as TableRecord[]));
      commits += 1;
      rows += 'numRows' in added ? added.numRows : added.length;
    },
    async remove(where: string): Promise<void> {
      await retried(() => table.delete(where));
      commits += 1;
    },
    count: () => table.countRows(),
    /** Commits and rows that came since the last `optimize`. */
    loose: () => ({ commits, rows }),
    async optimize(now: number): Promise<void> {
      await retried(() => table.optimize({ cleanupOlderThan: new Date(now - OLD_VERSION_MS) }));
      commits = 0;
      rows = 0;
      optimizations += 1;
      await retried(indexVectors);
    },
    page: (limit: number, offset: number): Promise<ArrowTable> => table.query().limit(limit).offset(offset).toArrow(),
  };
}

/** Copies every row to a table of this name: what was deleted is not copied. */
async function copyTable(place: TablePlace, from: RowTable, name: string): Promise<RowTable> {
  const copy = await createRowTable(place, name);
  const count = await from.count();
  for (let offset = 0; offset < count; offset += COPIED_AT_ONCE)
    await copy.add(await from.page(COPIED_AT_ONCE, offset));
  if ((await copy.count()) !== count) throw new Error('not every row could be copied');
  return copy;
}

async function laneRows(table: Promise<ArrowTable>): Promise<LaneRows> {
  const rows = await table;
  const [scores, distances] = [rows.getChild('_score'), rows.getChild('_distance')];
  const scoreAt = (at: number): number =>
    scores === null ? 1 - ((distances?.get(at) as number | null) ?? 1) : (scores.get(at) as number);
  return { rowIds: getRowIds(rows), scores: Array.from({ length: rows.numRows }, (_, at) => scoreAt(at)) };
}

function sorted({ rowIds, scores }: LaneRows, limit: number): LaneRows {
  const places = [...rowIds.keys()].sort((one, other) => (scores[other] as number) - (scores[one] as number));
  const best = places.slice(0, limit);
  return { rowIds: best.map((at) => rowIds[at] as number), scores: best.map((at) => scores[at] as number) };
}

/** 64-bit numbers that a float holds, without making a bigint of each. */
export function getRowIds(rows: ArrowTable): number[] {
  return (rows.getChild('_rowid')?.data ?? []).flatMap(({ values, length }) => {
    const { buffer, byteOffset } = values as BigUint64Array;
    const halves = new Uint32Array(buffer, byteOffset, length * 2);
    return Array.from({ length }, (_, at) => (halves[at * 2 + 1] as number) * 2 ** 32 + (halves[at * 2] as number));
  });
}

/** Objects that read a column when it is asked for. */
export function findRows<T>(rows: RecordBatch | ArrowTable): readonly T[] {
  return rows.toArray() as unknown as readonly T[];
}

async function retried(work: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await work();
      return;
    } catch (error) {
      if (attempt === TRIES || !/conflict/i.test((error as Error).message)) throw error;
    }
  }
}

export type Kind = IndexRow['kind'];
export type TableRecord = Readonly<Record<string, unknown>>;

/** Raise it when a column changes: an index of another format is rebuilt. */
export const FORMAT = 5;

interface TableShape {
  /** Columns of text, besides `node_id`, `session_id` and `origin`. */
  readonly texts: readonly string[];
  /** Columns of space-separated tokens with a full-text index. */
  readonly words: readonly string[];
  readonly others: readonly (readonly [name: string, type: () => DataType])[];
  readonly lookups: readonly string[];
  readonly hit: readonly string[];
}

export const SHAPES: Readonly<Record<Kind, TableShape>> = {
  turn: {
    texts: ['turn_id', 'text'],
    words: ['tokens', 'window'],
    others: [
      ['place', () => new arrow.Float64()],
      ['timed', () => new arrow.Bool()],
      ['pieces', () => new arrow.Binary()],
    ],
    lookups: ['turn_id', 'session_id'],
    hit: ['node_id', 'created_at_ms', 'turn_id', 'place', 'timed'],
  },
  node: { texts: ['digest'], words: ['tokens', 'trigger'], others: [], lookups: [], hit: ['node_id', 'created_at_ms'] },
  fact: {
    // Ids, one a line.
    texts: ['sources'],
    words: ['tokens'],
    others: [],
    lookups: [],
    hit: ['node_id', 'created_at_ms', 'sources'],
  },
};

export function getSchema(kind: Kind, dimensions: number): Schema {
  const { texts, words, others } = SHAPES[kind];
  const vector = (name: string, size: number): Field =>
    new arrow.Field(name, new arrow.FixedSizeList(size, new arrow.Field('item', new arrow.Float32(), true)), true);
  const columns = ['node_id', 'session_id', 'origin', ...texts, ...words];
  return new arrow.Schema([
    ...columns.map((name) => new arrow.Field(name, new arrow.Utf8(), false)),
    new arrow.Field('created_at_ms', new arrow.Float64(), false),
    ...others.map(([name, type]) => new arrow.Field(name, type(), false)),
    vector('vector', dimensions),
    vector('script_vector', SCRIPT_DIMENSIONS),
  ]);
}

/** The tokenizer is ours: LanceDB only splits at spaces. */
export const wordsIndex = () =>
  Index.fts({
    baseTokenizer: 'whitespace',
    lowercase: false,
    stem: false,
    removeStopWords: false,
    asciiFolding: false,
    withPosition: false,
    maxTokenLength: 512,
  });

export const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

export const isIn = (column: string, values: readonly string[]): string =>
  `${column} IN (${values.map(quoted).join(', ')})`;

/** A table for each kind of row of each project: statistics of words are a project's own, and so is the cost. */
export type Tables = Awaited<ReturnType<typeof openTables>>;

/** LanceDB's own limits are six gigabytes and one. */
const INDEX_CACHE_BYTES = 32n * 1024n * 1024n;
const METADATA_CACHE_BYTES = 4n * 1024n * 1024n;
const NAME = /^(turn|node|fact)-([0-9a-f]{16})-(\d+)$/;

export const getKey = (project: string): string => sha256(project, 16);

export async function openTables({
  dir,
  ...shape
}: Omit<TablePlace, 'connection' | 'kind'> & { readonly dir: string }) {
  let connection = await connected(dir);
  const generations = new Map<string, number>();
  const tables = new Map<string, Promise<RowTable>>();
  const ready = new Map<string, RowTable>();
  await list();

  /** Two generations of a table are left by a rewrite that did not end: the older one is whole. */
  async function list(): Promise<void> {
    const names = (await connection.tableNames({ limit: 100_000 })).flatMap((name) => {
      const [, kind, key, generation] = NAME.exec(name) ?? [];
      return generation === undefined ? [] : [{ id: `${kind}-${key}`, generation: Number(generation) }];
    });
    for (const { id, generation } of names.sort((one, other) => one.generation - other.generation)) {
      if (generations.has(id)) await connection.dropTable(`${id}-${generation}`);
      else generations.set(id, generation);
    }
  }

  const getPlace = (kind: Kind): TablePlace => ({ connection, kind, ...shape });

  async function open(id: string, opening: Promise<RowTable>): Promise<RowTable> {
    tables.set(id, opening);
    try {
      const table = await opening;
      ready.set(id, table);
      return table;
    } catch (error) {
      tables.delete(id);
      throw error;
    }
  }

  async function find(key: string, kind: Kind): Promise<RowTable | null> {
    const id = `${kind}-${key}`;
    const generation = generations.get(id);
    if (generation === undefined) return null;
    return tables.get(id) ?? open(id, openRowTable(getPlace(kind), `${id}-${generation}`));
  }

  return {
    keys: () => [...new Set([...generations.keys()].map((id) => id.split('-')[1] as string))],
    /** Null where the project has no row of this kind. */
    find,
    async findOrCreate(key: string, kind: Kind): Promise<RowTable> {
      const row = await find(key, kind);
      if (row !== null) return row;
      const id = `${kind}-${key}`;
      const created = await open(id, createRowTable(getPlace(kind), `${id}-1`));
      generations.set(id, 1);
      return created;
    },
    opened: () => [...ready.values()],
    /** Replaces a table by a copy without what was deleted. @param settled  resolves when no search reads the old one */
    async rewrite(key: string, kind: Kind, settled: () => Promise<unknown>): Promise<void> {
      const old = await find(key, kind);
      if (old === null) return;
      const id = `${kind}-${key}`;
      const generation = (generations.get(id) as number) + 1;
      const copy = await copyTable(getPlace(kind), old, `${id}-${generation}`);
      generations.set(id, generation);
      tables.set(id, Promise.resolve(copy));
      ready.set(id, copy);
      await settled();
      await connection.dropTable(old.name);
    },
    async drop(key: string): Promise<void> {
      for (const [id, generation] of [...generations]) {
        if (!id.endsWith(`-${key}`)) continue;
        generations.delete(id);
        tables.delete(id);
        ready.delete(id);
        // Also where it cannot be read any more.
        await rm(path.join(dir, `${id}-${generation}.lance`), { recursive: true, force: true });
      }
    },
    /** Opens everything again when it is next used: native memory grows with every commit. */
    async reopen(): Promise<void> {
      connection = await connected(dir);
      tables.clear();
      ready.clear();
    },
    close: () => connection.close(),
  };
}

const connected = (dir: string): Promise<Connection> =>
  connect(dir, { readConsistencyInterval: 0, session: new Session(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES) });
