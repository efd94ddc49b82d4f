import path from 'node:path';
import { connect } from '@lancedb/lancedb';
import { expect, test } from 'vitest';
import { openLanceIndex } from '../../../../../memory/search/lancedb/search-index.ts';
import type { SearchIndex } from '../../../../../memory/search/search-index.ts';
import { nodeRow } from '../../../../contract/search-index.ts';
import { createHashEmbedder } from '../../../../helpers/hash-embedder.ts';
import { getIds, searched } from '../../../../helpers/lane-hits.ts';
import { tempDirs } from '../../../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const ROWS = 600;
/** How far a cosine may be off: the index holds bytes. */
const QUANTIZED = 0.02;
const words = 'port host cache queue index token label route timer batch shard lease quota audit proxy'.split(' ');
const getText = (at: number): string =>
  [0, 1, 2].map((place) => words[Math.floor(at / words.length ** place) % words.length]).join(' ');

async function open(dir: string, rowsForVectorIndex: number): Promise<SearchIndex> {
  const report = (problem: unknown): never => {
    throw new Error(JSON.stringify(problem));
  };
  const opened = await openLanceIndex({
    dir,
    embedder: createHashEmbedder(),
    now: Date.now,
    rowsForVectorIndex,
    report,
  });
  return opened.index;
}

async function vectorIndexes(dir: string): Promise<string[]> {
  const connection = await connect(dir);
  const names: string[] = [];
  for (const name of await connection.tableNames()) {
    const indices = await (await connection.openTable(name)).listIndices();
    names.push(...indices.filter(({ columns }) => columns.includes('vector')).map((each) => each.name));
  }
  connection.close();
  return names;
}

const rows = Array.from({ length: ROWS }, (_, at) => nodeRow(`n${at}`, `common ${getText(at)}`));

test('many rows get a vector index that finds what comparing all finds, and keeps up with changes', async () => {
  const [flatDir, dir] = [path.join(await tempDir(), 'flat'), path.join(await tempDir(), 'index')];
  const [flat, index] = [await open(flatDir, ROWS + 1), await open(dir, ROWS)];
  for (const each of [flat, index]) await each.put(rows);
  for (const each of [flat, index]) await each.optimize();
  expect(await vectorIndexes(dir)).toEqual(['vector_rq']);
  expect(await vectorIndexes(flatDir)).toEqual([]);
  let asNear = 0;
  for (const query of words) {
    const exact = (await searched(flat, `${query} label`)).summary;
    const near = (await searched(index, `${query} label`)).summary;
    const least = (exact.at(-1)?.score ?? 1) - QUANTIZED;
    asNear += near.filter(({ score }) => score >= least).length / exact.length;
  }
  expect(asNear / words.length).toBeGreaterThan(0.9);
  await index.put([nodeRow('late', 'zebra crossing sign')]);
  expect((await searched(index, 'zebra crossing sign')).summary[0]?.id).toBe('late');
  await index.remove(['late']);
  expect(getIds((await searched(index, 'zebra crossing sign')).summary)).not.toContain('late');
  await index.optimize();
  expect(await vectorIndexes(dir)).toEqual(['vector_rq']);
  for (const each of [flat, index]) await each.close();
});

test('a vector index of an earlier run is used, and cleared with everything else', async () => {
  const dir = path.join(await tempDir(), 'index');
  const first = await open(dir, ROWS);
  await first.put(rows);
  await first.optimize();
  await first.close();
  const again = await open(dir, ROWS);
  expect((await searched(again, `common ${getText(7)}`)).summary[0]?.score).toBeCloseTo(1, 2);
  await again.clear();
  expect(await vectorIndexes(dir)).toEqual([]);
  await again.put([nodeRow('a', 'alpha')]);
  expect(getIds((await searched(again, 'alpha')).summary)).toEqual(['a']);
  await again.close();
});

test('rows that came at once are indexed after a second of rest', async () => {
  const dir = path.join(await tempDir(), 'index');
  const index = await open(dir, ROWS);
  await index.put(rows);
  await expect.poll(() => vectorIndexes(dir)).toEqual(['vector_rq']);
  await index.close();
});
