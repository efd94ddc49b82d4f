import { rm } from 'node:fs/promises';
import path from 'node:path';
import { type Connection, connect, Index, Session, type Table } from '@lancedb/lancedb';
import type { Table as ArrowTable } from 'apache-arrow';
import type { IndexFilter, IndexRow, TurnWords } from '../node-index.ts';
import { asRecord, SCANNED, type ScannedRow, type StoredRow, scannedRows, schemaFor } from './lance-rows.ts';
import type { VectorIndex } from './lance-vectors.ts';
import { createRecentTurns } from './write-buffer.ts';

export type VectorColumn = 'summary_vector' | 'trigger_vector' | 'script_vector';

/** Best first; higher is better. */
export interface ScoredRow {
  readonly rowId: string;
  readonly score: number;
}

export interface RowFilter extends IndexFilter {
  readonly kinds?: readonly IndexRow['kind'][];
  /** About how many rows of all kinds the filter lets through; not known, it is all of them. */
  readonly among?: number;
}

/** One LanceDB table with its vector columns. Errors are LanceDB's own. */
export interface LanceTable {
  add(rows: readonly StoredRow[]): Promise<void>;
  /** Replaces rows of the same `row_id`, in one commit. */
  replace(rows: readonly StoredRow[]): Promise<void>;
  deleteNodes(nodeIds: readonly string[]): Promise<void>;
  count(): Promise<number>;
  /** All rows, or those of these ids, so many at a time that nobody waits for long. */
  scan(scan?: {
    readonly rowIds?: readonly string[];
    readonly vectors?: boolean;
  }): AsyncIterable<readonly ScannedRow[]>;
  /** Up to `most` summary vectors. */
  sample(most: number): Promise<Float32Array[]>;
  nearest(column: VectorColumn, vector: Float32Array, filter: RowFilter, limit: number): Promise<ScoredRow[]>;
  turnWords(turnIds: readonly string[]): Promise<Map<string, TurnWords>>;
  /** Copies every row into a fresh table and drops the old one: rows deleted before leave nothing on disk. */
  rewrite(): Promise<void>;
  /** Begins anew without a row, also where the old one cannot be read. */
  clear(): Promise<void>;
  /** Pieces the table is stored in: one when it is tidy. */
  fragments(): Promise<number>;
  /** Merges fragments, brings the indexes up to date, and removes versions that are older than this. */
  optimize(cleanupOlderThan: Date): Promise<void>;
  /** Makes the index of vectors where so many rows should have one, and drops it where none is wanted. */
  indexVectors(isWanted: boolean): Promise<void>;
  hasVectorIndex(): boolean;
  /** Starts over on a fresh handle: native memory grows with every commit of an old one. */
  reopen(): Promise<void>;
  close(): void;
}

/** One of them at a time; both only while one is copied into the other. */
const TABLES = ['rows', 'rows2'] as const;
const COPIED_AT_ONCE = 1_000;
const SCANNED_AT_ONCE = 500;
/** What LanceDB may keep of indexes and of files: its own limits are six gigabytes and one, a commit leaves 80 KB. */
const INDEX_CACHE_BYTES = 32n * 1024n * 1024n;
const METADATA_CACHE_BYTES = 4n * 1024n * 1024n;
/** Few values each: they make a filtered lane faster. */
const FILTERED = ['kind', 'project'];

/** Null when there is no table yet. @throws when it cannot be read */
export async function openLanceTable(place: TablePlace): Promise<LanceTable | 'other columns' | null> {
  const { dir, dimensions, vectors } = place;
  const connection = await connected(dir);
  const names = await tableNames(connection);
  if (names.length > 1) throw new Error('a rewrite did not come to its end');
  if (names[0] === undefined) return null;
  const table = await connection.openTable(names[0]);
  const found = (await table.schema()).fields.map(({ name, type }) => `${name} ${type}`).join();
  const expected = schemaFor(dimensions)
    .fields.map(({ name, type }) => `${name} ${type}`)
    .join();
  if (found !== expected) {
    table.close();
    return 'other columns';
  }
  await vectors.load(table);
  return await tableOn(place, connection, table);
}

/** Drops what is there. */
export async function createLanceTable(place: TablePlace): Promise<LanceTable> {
  const { dir, dimensions } = place;
  const connection = await connected(dir);
  for (const name of await tableNames(connection)) await connection.dropTable(name);
  return await tableOn(place, connection, await emptyTable(connection, TABLES[0], dimensions));
}

function connected(dir: string): Promise<Connection> {
  const session = new Session(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES);
  return connect(dir, { readConsistencyInterval: 0, session });
}

async function tableNames(connection: Connection): Promise<string[]> {
  const names = await connection.tableNames();
  return TABLES.filter((name) => names.includes(name));
}

async function emptyTable(connection: Connection, name: string, dimensions: number): Promise<Table> {
  const table = await connection.createEmptyTable(name, schemaFor(dimensions));
  await makeIndexes(table);
  return table;
}

async function makeIndexes(table: Table): Promise<void> {
  for (const column of FILTERED) await table.createIndex(column, { config: Index.bitmap() });
  await table.createIndex('turn', { config: Index.btree() });
}

interface TablePlace {
  readonly dir: string;
  readonly dimensions: number;
  readonly vectors: VectorIndex;
}

async function tableOn(
  { dir, dimensions, vectors }: TablePlace,
  firstConnection: Connection,
  firstTable: Table,
): Promise<LanceTable> {
  let connection = firstConnection;
  let table = firstTable;
  const recent = createRecentTurns();
  await settle();

  /** Where the index of turns knows all rows, only those that come now need be held beside it. */
  async function settle(): Promise<void> {
    const stats = await table.indexStats('turn_idx');
    if (stats?.numUnindexedRows === 0) recent.begin();
    else recent.giveUp();
  }

  const reading = new Set<Promise<unknown>>();

  async function read(query: Readable): Promise<ArrowTable> {
    const rows = query.toArrow();
    const settled = rows.then(
      () => undefined,
      () => undefined,
    );
    reading.add(settled);
    try {
      return await rows;
    } finally {
      reading.delete(settled);
    }
  }

  return {
    async add(rows) {
      await table.add(rows.map(asRecord));
      recent.put(rows);
    },
    async replace(rows) {
      const merge = table.mergeInsert('row_id').whenMatchedUpdateAll().whenNotMatchedInsertAll();
      await merge.execute(rows.map(asRecord));
      recent.put(rows);
    },
    async deleteNodes(nodeIds) {
      await table.delete(`node_id IN (${nodeIds.map(quoted).join(', ')})`);
      recent.removeNodes(nodeIds);
    },
    count: () => table.countRows(),
    async *scan({ rowIds, vectors: withVectors = false } = {}) {
      const query = table.query().select(withVectors ? [...SCANNED, 'summary_vector'] : SCANNED);
      if (rowIds !== undefined) query.where(`row_id IN (${rowIds.map(quoted).join(', ')})`);
      for await (const batch of query) {
        for (let at = 0; at < batch.numRows; at += SCANNED_AT_ONCE) {
          yield scannedRows(batch, at, at + SCANNED_AT_ONCE);
        }
      }
    },
    async sample(most) {
      const rows = (await table.query().select(['summary_vector']).limit(most).toArray()) as {
        readonly summary_vector: Iterable<number> | null;
      }[];
      return rows.flatMap((row) => (row.summary_vector === null ? [] : [Float32Array.from(row.summary_vector)]));
    },
    async nearest(column, vector, filter, limit) {
      if (vector.every((value) => value === 0)) return [];
      const query = table.query().nearestTo(vector).column(column).distanceType('cosine');
      restrict(query, filter);
      const probes = vectors.probes(filter.among ?? Number.MAX_SAFE_INTEGER);
      if (probes === null) query.bypassVectorIndex();
      else query.nprobes(probes);
      return scoredRows(await read(query.select(['row_id', '_distance']).limit(limit)));
    },
    async turnWords(turnIds) {
      const found = recent.words(turnIds);
      const others = turnIds.filter((turnId) => !found.has(turnId));
      if (others.length === 0) return found;
      const query = table.query().where(`turn IN (${others.map(quoted).join(', ')})`);
      // Each piece that the index does not know would be read through.
      if (recent.isWhole()) query.fastSearch();
      const rows = await read(query.select(['turn', 'text', 'origin']));
      for (const { turn, text, origin } of rows.toArray() as Pick<IndexRow, 'turn' | keyof TurnWords>[]) {
        found.set(turn, { text, origin });
      }
      return found;
    },
    async rewrite() {
      const old = table;
      const fresh = await emptyTable(connection, TABLES.find((name) => name !== old.name) as string, dimensions);
      const rows = await old.countRows();
      for (let offset = 0; offset < rows; offset += COPIED_AT_ONCE) {
        await fresh.add(await old.query().limit(COPIED_AT_ONCE).offset(offset).toArrow());
      }
      if ((await fresh.countRows()) !== rows) throw new Error('not every row could be copied');
      if (rows > 0) await fresh.optimize();
      if (vectors.exists()) await vectors.build(fresh, rows);
      table = fresh;
      // A search that began on the old table still reads its files.
      await Promise.all(reading);
      old.close();
      await connection.dropTable(old.name);
      await settle();
    },
    async clear() {
      const { name } = table;
      table.close();
      await rm(path.join(dir, `${name}.lance`), { recursive: true, force: true });
      table = await emptyTable(connection, name, dimensions);
      await vectors.load(table);
      await settle();
    },
    fragments: async () => (await table.stats()).fragmentStats.numFragments,
    async optimize(cleanupOlderThan) {
      await table.optimize();
      // A search that began before still reads files of the version it began with.
      await Promise.all(reading);
      await table.optimize({ cleanupOlderThan });
      vectors.tidied();
      await settle();
    },
    async indexVectors(isWanted) {
      const rows = await table.countRows();
      if (!isWanted) await vectors.drop(table);
      else if (vectors.isDue(rows)) await vectors.build(table, rows);
    },
    hasVectorIndex: vectors.exists,
    async reopen() {
      const [oldConnection, oldTable] = [connection, table];
      connection = await connected(dir);
      table = await connection.openTable(oldTable.name);
      oldTable.close();
      oldConnection.close();
    },
    close() {
      table.close();
      connection.close();
    },
  };
}

interface Readable {
  toArrow(): Promise<ArrowTable>;
}

/** Read by column: an object for each row would cost more than the search. */
function scoredRows(found: ArrowTable): ScoredRow[] {
  const [ids, distances] = [found.getChild('row_id'), found.getChild('_distance')];
  const rows: ScoredRow[] = [];
  for (let at = 0; at < found.numRows; at += 1) {
    const distance = (distances?.get(at) ?? null) as number | null;
    const score = distance === null ? 0 : 1 - distance;
    if (score > 0) rows.push({ rowId: ids?.get(at) as string, score });
  }
  return rows.sort((left, right) => right.score - left.score);
}

/** A filter that lets everything through costs as much as any other. */
function restrict(query: { where(predicate: string): unknown }, { kinds, project, sessionId }: RowFilter): void {
  const equal = Object.entries({ project, session_id: sessionId }).flatMap(([column, value]) =>
    value === undefined ? [] : [`${column} = ${quoted(value)}`],
  );
  const conditions = kinds === undefined ? equal : [`kind IN (${kinds.map(quoted).join(', ')})`, ...equal];
  if (conditions.length > 0) query.where(conditions.join(' AND '));
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
