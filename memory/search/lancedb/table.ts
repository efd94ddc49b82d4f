import { type Connection, Index, MatchQuery, type Table } from '@lancedb/lancedb';
import type { Table as ArrowTable, RecordBatch } from 'apache-arrow';
import { type Kind, SHAPES, schemaOf, type TableRecord, wordsIndex } from './schema.ts';

/** Comparing fewer vectors one by one is fast, and exact. */
const ROWS_FOR_VECTOR_INDEX = 5_000;
const VECTOR_INDEX = 'vector_hnsw';
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

/** What a lane found. Row ids stay the same when the table is optimized. */
export interface LaneRows {
  readonly rowIds: readonly number[];
  /** BM25, or the cosine. */
  readonly scores: readonly number[];
}

/** Rows of one kind in one project. Errors are LanceDB's own. */
export interface RowTable {
  readonly name: string;
  matching(column: string, terms: readonly string[], query: LaneQuery): Promise<LaneRows>;
  nearest(column: string, vector: Float32Array, query: LaneQuery): Promise<LaneRows>;
  /** Columns of `SHAPES[kind].hit` and `_rowid` of these rows, as far as they are still there. */
  take(rowIds: readonly number[]): Promise<ArrowTable>;
  read(columns: readonly string[], where: string | undefined): AsyncIterable<RecordBatch>;
  add(rows: readonly TableRecord[] | ArrowTable): Promise<void>;
  remove(where: string): Promise<void>;
  count(): Promise<number>;
  /** Commits and rows that came since the last `optimize`. */
  loose(): { readonly commits: number; readonly rows: number };
  optimize(now: number): Promise<void>;
  /** Copies every row to a table of this name: what was deleted is not copied. */
  copyTo(name: string): Promise<RowTable>;
}

export interface TablePlace {
  readonly connection: Connection;
  readonly kind: Kind;
  readonly dimensions: number;
  readonly rowsForVectorIndex: number | undefined;
}

export async function createRowTable(place: TablePlace, name: string): Promise<RowTable> {
  const table = await place.connection.createEmptyTable(name, schemaOf(place.kind, place.dimensions), {
    storageOptions: { new_table_enable_stable_row_ids: 'true' },
  });
  const { words, lookups } = SHAPES[place.kind];
  for (const column of words) await table.createIndex(column, { config: wordsIndex() });
  for (const column of lookups) await table.createIndex(column, { config: Index.btree() });
  return tableOn(place, table, 0);
}

export async function openRowTable(place: TablePlace, name: string): Promise<RowTable> {
  const table = await place.connection.openTable(name);
  const { numFragments } = (await table.stats()).fragmentStats;
  return tableOn(place, table, Math.max(0, numFragments - 1));
}

function tableOn(place: TablePlace, table: Table, looseCommits: number): RowTable {
  const { kind, rowsForVectorIndex = ROWS_FOR_VECTOR_INDEX } = place;
  const { hit } = SHAPES[kind];
  let commits = looseCommits;
  let rows = 0;
  let optimizations = 0;

  async function indexVectors(): Promise<void> {
    const isMissing = !(await table.listIndices()).some(({ name }) => name === VECTOR_INDEX);
    if (!isMissing && optimizations < OPTIMIZATIONS_PER_BUILD) return;
    if ((await table.countRows('vector IS NOT NULL')) < rowsForVectorIndex) return;
    const config = Index.hnswSq({ distanceType: 'cosine', numPartitions: 1 });
    await table.createIndex('vector', { config, name: VECTOR_INDEX, replace: true });
    optimizations = 0;
  }

  return {
    name: table.name,
    matching(column, terms, { limit, where }) {
      const query = table.query().fullTextSearch(new MatchQuery(terms.join(' '), column));
      if (where !== undefined) query.where(where);
      return laneRows(query.select(['_score']).withRowId().limit(limit).toArrow());
    },
    nearest(column, vector, { limit, where }) {
      // Distances of the index itself are of quantized vectors, and squared: the found rows are compared again.
      const query = table.query().nearestTo(vector).column(column).distanceType('cosine').refineFactor(1);
      if (where !== undefined) query.where(where);
      return laneRows(query.select(['_distance']).withRowId().limit(limit).toArrow());
    },
    take: (rowIds) =>
      table
        .takeRowIds([...rowIds])
        .select([...hit])
        .withRowId()
        .toArrow(),
    read(columns, where) {
      const query = table.query().select([...columns]);
      return where === undefined ? query : query.where(where);
    },
    async add(added) {
      await retried(() => table.add(added as TableRecord[]));
      commits += 1;
      rows += 'numRows' in added ? added.numRows : added.length;
    },
    async remove(where) {
      await retried(() => table.delete(where));
      commits += 1;
    },
    count: () => table.countRows(),
    loose: () => ({ commits, rows }),
    async optimize(now) {
      await retried(() => table.optimize({ cleanupOlderThan: new Date(now - OLD_VERSION_MS) }));
      commits = 0;
      rows = 0;
      optimizations += 1;
      await retried(indexVectors);
    },
    async copyTo(name) {
      const copy = await createRowTable(place, name);
      const count = await table.countRows();
      for (let offset = 0; offset < count; offset += COPIED_AT_ONCE) {
        const some = await table.query().limit(COPIED_AT_ONCE).offset(offset).toArrow();
        await copy.add(some);
      }
      if ((await copy.count()) !== count) throw new Error('not every row could be copied');
      return copy;
    },
  };
}

async function laneRows(found: Promise<ArrowTable>): Promise<LaneRows> {
  const rows = await found;
  const [scores, distances] = [rows.getChild('_score'), rows.getChild('_distance')];
  const scoreAt = (at: number): number =>
    scores === null ? 1 - ((distances?.get(at) as number | null) ?? 1) : (scores.get(at) as number);
  return { rowIds: rowIdsOf(rows), scores: Array.from({ length: rows.numRows }, (_, at) => scoreAt(at)) };
}

/** 64-bit numbers that a float holds, without making a bigint of each. */
export function rowIdsOf(rows: ArrowTable): number[] {
  return (rows.getChild('_rowid')?.data ?? []).flatMap(({ values, length }) => {
    const { buffer, byteOffset } = values as BigUint64Array;
    const halves = new Uint32Array(buffer, byteOffset, length * 2);
    return Array.from({ length }, (_, at) => (halves[at * 2 + 1] as number) * 2 ** 32 + (halves[at * 2] as number));
  });
}

/** Rows of a batch as objects that read a column when it is asked for. */
export function rowsIn<T>(batch: RecordBatch): readonly T[] {
  return batch.toArray() as unknown as readonly T[];
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
