import { type Connection, connect, Index, MatchQuery, type Table } from '@lancedb/lancedb';
import { createVectorIndex } from '../../memory/adapters/lance-vectors.ts';

/** What somebody would write who has only LanceDB: one vector search and one full-text search, at the same time. */
export interface PlainQueries {
  both(nth: number): Promise<void>;
  /** Share of the flat search's ten nearest found with as many probes as the product takes; null where it is flat itself. */
  recallAt10(queries: number): Promise<number | null>;
  close(): void;
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
      if (!(await table.listIndices()).some(({ columns }) => columns.includes(VECTOR))) return null;
      const vectors = createVectorIndex();
      await vectors.load(table);
      const probes = vectors.probes(await table.countRows()) ?? 0;
      let found = 0;
      let asked = 0;
      for (let nth = 0; nth < queries; nth += 1) {
        const vector = shaken(vectorOf(nth), nth);
        const exact = await rowIds(nearest(vector, 10).bypassVectorIndex());
        const near = new Set(await rowIds(probes > 0 ? nearest(vector, 10).nprobes(probes) : nearest(vector, 10)));
        asked += exact.length;
        found += exact.filter((id) => near.has(id)).length;
      }
      return found / asked;
    },
    close() {
      table.close();
      connection.close();
    },
  };
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
