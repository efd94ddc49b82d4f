import { type Connection, connect, Index, MatchQuery, type Table } from '@lancedb/lancedb';
import { createVectorIndex } from '../../memory/search/lancedb/lance-vectors.ts';
import { createVectorBook } from '../../memory/search/vector-index.ts';

/** What somebody would write who has only LanceDB: one vector search and one full-text search, at the same time. */
export interface PlainQueries {
  both(nth: number): Promise<void>;
  /** Share of the flat search's ten nearest that the product finds, and where it looks. */
  recallAt10(queries: number): Promise<Nearness>;
  close(): void;
}

export interface Nearness {
  readonly by: 'memory' | 'index' | 'flat search';
  readonly recall: number;
}

const VECTOR = 'summary_vector';
const SHOWN = ['row_id', 'node_id', 'session_id', 'text'];
const LIMIT = 40;
const COPIED_AT_ONCE = 5_000;
const TEXTS = 'texts';

/** LanceDB's own full text over the same rows, in a folder beside the index; what is there is left as it is. */
export async function preparePlain(dir: string): Promise<void> {
  const source = await connect(dir);
  const target = await connect(besides(dir));
  if ((await target.tableNames()).includes(TEXTS)) return;
  const rows = await onlyTable(source);
  const count = await rows.countRows();
  const [first, ...more] = Array.from({ length: Math.ceil(count / COPIED_AT_ONCE) }, (_, at) =>
    rows
      .query()
      .select(SHOWN)
      .limit(COPIED_AT_ONCE)
      .offset(at * COPIED_AT_ONCE),
  );
  if (first === undefined) throw new Error('the index is empty');
  const texts = await target.createTable(TEXTS, await first.toArrow());
  for (const some of more) await texts.add(await some.toArrow());
  await texts.createIndex('text', { config: Index.fts() });
  await texts.optimize();
}

export async function openPlain(dir: string, questions: readonly string[]): Promise<PlainQueries> {
  const connection = await connect(dir, { readConsistencyInterval: 0 });
  const table = await onlyTable(connection);
  const texts = await (await connect(besides(dir))).openTable(TEXTS);
  const vectors = await someVectors(table, questions.length);
  const vectorOf = (nth: number): Float32Array => vectors[nth % vectors.length] as Float32Array;
  const nearest = (vector: Float32Array, limit: number) =>
    table.query().nearestTo(vector).column(VECTOR).distanceType('cosine').limit(limit);
  return {
    async both(nth) {
      const words = (questions[nth % questions.length] as string).toLowerCase().match(/[a-z]+/g) ?? [];
      const text = texts.query().fullTextSearch(new MatchQuery(words.join(' '), 'text'));
      await Promise.all([
        nearest(vectorOf(nth), LIMIT)
          .select([...SHOWN, '_distance'])
          .toArray(),
        text
          .select([...SHOWN, '_score'])
          .limit(LIMIT)
          .toArray(),
      ]);
    },
    async recallAt10(queries) {
      const { by, near } = await productNear(table);
      let found = 0;
      let asked = 0;
      for (let nth = 0; nth < queries; nth += 1) {
        const vector = shaken(vectorOf(nth), nth);
        const exact = await rowIds(nearest(vector, 10).bypassVectorIndex());
        const given = new Set(await near(vector));
        asked += exact.length;
        found += exact.filter((id) => given.has(id)).length;
      }
      return { by, recall: found / asked };
    },
    close() {
      table.close();
      connection.close();
    },
  };
}

/** The ten nearest as the product finds them. */
async function productNear(
  table: Table,
): Promise<{ readonly by: Nearness['by']; near(vector: Float32Array): Promise<readonly string[]> }> {
  const rows = await table.countRows();
  const { listSize = 0 } = (await table.schema()).fields.find(({ name }) => name === VECTOR)?.type ?? {};
  const held = createVectorBook(listSize, rows);
  if (held.isWhole()) {
    const ids: string[] = [];
    for await (const batch of table.query().select(['row_id', VECTOR])) {
      const [names, vectors] = [batch.getChild('row_id'), batch.getChild(VECTOR)];
      for (let at = 0; at < batch.numRows; at += 1) {
        held.put(ids.push(names?.get(at)) - 1, vectors?.get(at)?.toArray() ?? null);
      }
    }
    const near = async (vector: Float32Array): Promise<readonly string[]> =>
      (held.nearest(vector, () => 0, [10])[0]?.slots ?? []).map((slot) => ids[slot] as string);
    return { by: 'memory', near };
  }
  const vectors = createVectorIndex();
  await vectors.load(table);
  const probes = vectors.probes(rows);
  const asked = (vector: Float32Array) =>
    table.query().nearestTo(vector).column(VECTOR).distanceType('cosine').limit(10);
  const near = (vector: Float32Array): Promise<string[]> =>
    rowIds(probes === null ? asked(vector).bypassVectorIndex() : asked(vector).nprobes(probes));
  return { by: probes === null ? 'flat search' : 'index', near };
}

function besides(dir: string): string {
  return `${dir}-plain`;
}

async function onlyTable(connection: Connection): Promise<Table> {
  const [name] = await connection.tableNames();
  if (name === undefined) throw new Error('the index has no table');
  return await connection.openTable(name);
}

async function rowIds(query: ReturnType<ReturnType<Table['query']>['nearestTo']>): Promise<string[]> {
  const rows = (await query.select(['row_id', '_distance']).toArray()) as { readonly row_id: string }[];
  return rows.map(({ row_id }) => row_id);
}

async function someVectors(table: Table, count: number): Promise<Float32Array[]> {
  const rows = await table.countRows();
  const step = Math.max(1, Math.floor(rows / count));
  const vectors: Float32Array[] = [];
  for (let offset = 0; offset < rows && vectors.length < count; offset += step) {
    const [row] = (await table.query().select([VECTOR]).limit(1).offset(offset).toArray()) as Record<
      string,
      Iterable<number>
    >[];
    if (row?.[VECTOR]) vectors.push(Float32Array.from(row[VECTOR]));
  }
  return vectors;
}

/** No question is a document: each vector is moved a little, always the same way. */
function shaken(vector: Float32Array, nth: number): Float32Array {
  return vector.map((value, at) => value + 0.03 * Math.sin(nth * 31 + at * 17));
}
