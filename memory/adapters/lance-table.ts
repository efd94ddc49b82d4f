import { rm } from 'node:fs/promises';
import path from 'node:path';
import { type Connection, connect, Index, MatchQuery, type Table } from '@lancedb/lancedb';
import { Field, FixedSizeList, Float32, Float64, Schema, Utf8 } from 'apache-arrow';
import type { IndexFilter, IndexRow, LaneHit } from '../ports.ts';

export type VectorColumn = 'summary_vector' | 'trigger_vector';

/** A row as it is stored: what `IndexRow` says, the words full text sees, the vectors and who made them. */
export interface StoredRow extends IndexRow {
  readonly tokens: string;
  readonly embedder_id: string;
  readonly summary_vector: Float32Array;
  readonly trigger_vector: Float32Array | null;
}

export type ScannedRow = Pick<StoredRow, 'row_id' | 'node_id' | 'session_id' | 'project' | 'tokens' | 'embedder_id'>;

export interface RowFilter extends IndexFilter {
  readonly kind?: IndexRow['kind'];
}

/** One LanceDB table with one full-text and two vector columns. Errors are LanceDB's own. */
export interface LanceTable {
  add(rows: readonly StoredRow[]): Promise<void>;
  /** Replaces rows of the same `row_id`, in one commit. */
  replace(rows: readonly StoredRow[]): Promise<void>;
  deleteNodes(nodeIds: readonly string[]): Promise<void>;
  scan(rowIds?: readonly string[]): Promise<ScannedRow[]>;
  fullText(terms: readonly string[], filter: RowFilter, limit: number): Promise<LaneHit[]>;
  nearest(column: VectorColumn, vector: Float32Array, filter: RowFilter, limit: number): Promise<LaneHit[]>;
  /** Begins anew without a row, also where the old one cannot be read. */
  clear(): Promise<void>;
  /** Whether every row is in the full-text index. */
  isSettled(): Promise<boolean>;
  optimize(cleanupOlderThan: Date): Promise<void>;
  /** Starts over on a fresh handle: native memory grows with every commit of an old one. */
  reopen(): Promise<void>;
  close(): void;
}

const TABLE = 'rows';
const SCANNED = ['row_id', 'node_id', 'session_id', 'project', 'tokens', 'embedder_id'];
const SHOWN = 'row_id kind node_id session_id project turn origin created_at_ms text summary trigger'.split(' ');

/** Null when there is no table yet. @throws when it cannot be read or was made for other vectors */
export async function openLanceTable(dir: string, dimensions: number): Promise<LanceTable | null> {
  const connection = await connect(dir, { readConsistencyInterval: 0 });
  if (!(await connection.tableNames()).includes(TABLE)) return null;
  const table = await connection.openTable(TABLE);
  const found = (await table.schema()).fields.map(({ name, type }) => `${name} ${type}`).join();
  const expected = schemaFor(dimensions)
    .fields.map(({ name, type }) => `${name} ${type}`)
    .join();
  if (found !== expected) throw new Error(`the table has other columns: ${found}`);
  return tableOn({ dir, dimensions }, connection, table);
}

/** Drops what is there. */
export async function createLanceTable(dir: string, dimensions: number): Promise<LanceTable> {
  const connection = await connect(dir, { readConsistencyInterval: 0 });
  if ((await connection.tableNames()).includes(TABLE)) await connection.dropTable(TABLE);
  return tableOn({ dir, dimensions }, connection, await emptyTable(connection, dimensions));
}

async function emptyTable(connection: Connection, dimensions: number): Promise<Table> {
  const table = await connection.createEmptyTable(TABLE, schemaFor(dimensions));
  // Our tokeniser did the work already; everything that would change its tokens is off.
  const config = Index.fts({
    baseTokenizer: 'whitespace',
    lowercase: false,
    stem: false,
    removeStopWords: false,
    asciiFolding: false,
    withPosition: false,
    maxTokenLength: 512,
  });
  await table.createIndex('tokens', { config });
  return table;
}

function tableOn(
  { dir, dimensions }: { readonly dir: string; readonly dimensions: number },
  firstConnection: Connection,
  firstTable: Table,
): LanceTable {
  let connection = firstConnection;
  let table = firstTable;

  const hits = async (query: { toArray(): Promise<unknown[]> }, scoreOf: (row: Scored) => number): Promise<LaneHit[]> =>
    ((await query.toArray()) as Scored[])
      .map((row) => ({ row: shownRow(row), score: scoreOf(row) }))
      .filter(({ score }) => score > 0)
      .sort((left, right) => right.score - left.score);

  return {
    async add(rows) {
      await table.add(rows.map(asRecord));
    },
    async replace(rows) {
      const merge = table.mergeInsert('row_id').whenMatchedUpdateAll().whenNotMatchedInsertAll();
      await merge.execute(rows.map(asRecord));
    },
    async deleteNodes(nodeIds) {
      await table.delete(`node_id IN (${nodeIds.map(quoted).join(', ')})`);
    },
    async scan(rowIds) {
      const query = table.query().select(SCANNED);
      if (rowIds !== undefined) query.where(`row_id IN (${rowIds.map(quoted).join(', ')})`);
      return (await query.toArray()) as ScannedRow[];
    },
    fullText(terms, filter, limit) {
      if (terms.length === 0) return Promise.resolve([]);
      const query = table
        .query()
        .fullTextSearch(new MatchQuery(terms.join(' '), 'tokens'))
        .where(whereOf(filter));
      return hits(query.select([...SHOWN, '_score']).limit(limit), ({ _score }) => _score ?? 0);
    },
    nearest(column, vector, filter, limit) {
      if (vector.every((value) => value === 0)) return Promise.resolve([]);
      const query = table.query().nearestTo(vector).column(column).distanceType('cosine').where(whereOf(filter));
      return hits(query.select([...SHOWN, '_distance']).limit(limit), ({ _distance }) => 1 - (_distance ?? 1));
    },
    async clear() {
      table.close();
      await rm(path.join(dir, `${TABLE}.lance`), { recursive: true, force: true });
      table = await emptyTable(connection, dimensions);
    },
    async isSettled() {
      const stats = await table.indexStats('tokens_idx');
      return stats !== undefined && stats.numUnindexedRows === 0;
    },
    async optimize(cleanupOlderThan) {
      await table.optimize({ cleanupOlderThan });
    },
    async reopen() {
      const [oldConnection, oldTable] = [connection, table];
      connection = await connect(dir, { readConsistencyInterval: 0 });
      table = await connection.openTable(TABLE);
      oldTable.close();
      oldConnection.close();
    },
    close() {
      table.close();
      connection.close();
    },
  };
}

type Scored = IndexRow & { readonly _score?: number; readonly _distance?: number };

/** A plain object: Arrow's rows are views that keep their whole batch alive. */
function shownRow(row: Scored): IndexRow {
  const { row_id, kind, node_id, session_id, project, turn, origin, created_at_ms, text, summary, trigger } = row;
  return { row_id, kind, node_id, session_id, project, turn, origin, created_at_ms, text, summary, trigger };
}

function asRecord(row: StoredRow): Record<string, unknown> {
  return { ...row };
}

function schemaFor(dimensions: number): Schema {
  const text = (name: string): Field => new Field(name, new Utf8(), false);
  const vector = (name: string): Field =>
    new Field(name, new FixedSizeList(dimensions, new Field('item', new Float32(), true)), true);
  const texts = 'row_id kind node_id session_id project turn origin text summary trigger tokens embedder_id'.split(' ');
  return new Schema([
    ...texts.map(text),
    new Field('created_at_ms', new Float64(), false),
    vector('summary_vector'),
    vector('trigger_vector'),
  ]);
}

function whereOf({ kind, project, sessionId }: RowFilter): string {
  const conditions = Object.entries({ kind, project, session_id: sessionId }).flatMap(([column, value]) =>
    value === undefined ? [] : [`${column} = ${quoted(value)}`],
  );
  return conditions.length === 0 ? 'true' : conditions.join(' AND ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
