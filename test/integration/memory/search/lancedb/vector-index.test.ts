import path from 'node:path';
import { connect } from '@lancedb/lancedb';
import { expect, test } from 'vitest';
import { openLanceIndex } from '../../../../../memory/search/lancedb/lance-index.ts';
import type { NodeIndex } from '../../../../../memory/search/node-index.ts';
import { nodeRow, turnRow } from '../../../../contract/node-index.ts';
import { createHashEmbedder } from '../../../../helpers/hash-embedder.ts';
import { searched } from '../../../../helpers/lane-hits.ts';
import { tempDirs } from '../../../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const ROWS = 600;
const words = 'port host cache queue index token label route timer batch shard lease quota audit proxy'.split(' ');
const textOf = (at: number): string =>
  [0, 1, 2].map((place) => words[Math.floor(at / words.length ** place) % words.length]).join(' ');

async function open(dir: string, rowsForVectorIndex: number): Promise<NodeIndex> {
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
  const [name] = await connection.tableNames();
  const table = await connection.openTable(name as string);
  const names = (await table.listIndices()).filter(({ columns }) => columns.includes('summary_vector'));
  connection.close();
  return names.map((each) => each.name);
}

const everything = { filter: {}, limit: 10 };
const rowIdsOf = (hits: readonly { row: { row_id: string } }[]): string[] => hits.map(({ row }) => row.row_id);
const rows = Array.from({ length: ROWS }, (_, at) =>
  nodeRow(`n${at}`, `common ${textOf(at)}`, { project: `p${at % 100}` }),
);

test('many rows get an index of vectors that finds what comparing all finds, and keeps up with what changes', async () => {
  const [flatDir, dir] = [path.join(await tempDir(), 'flat'), path.join(await tempDir(), 'index')];
  const [flat, index] = [await open(flatDir, ROWS + 1), await open(dir, ROWS)];
  for (const each of [flat, index]) await each.upsert(rows);
  await expect.poll(() => vectorIndexes(dir)).toEqual(['near_64']);
  expect(await vectorIndexes(flatDir)).toEqual([]);
  let found = 0;
  for (const query of words) {
    const exact = rowIdsOf((await searched(flat, `${query} label`, everything)).summary);
    const near = new Set(rowIdsOf((await searched(index, `${query} label`, everything)).summary));
    found += exact.filter((id) => near.has(id)).length / exact.length;
  }
  expect(found / words.length).toBeGreaterThan(0.8);
  await index.upsert([turnRow('late', 'end-late', 'zebra crossing sign')]);
  expect((await searched(index, 'zebra crossing sign', everything)).meaning[0]?.row.turn).toBe('end-late');
  await index.removeNodes(['late']);
  expect((await searched(index, 'zebra crossing sign', everything)).meaning).toEqual([]);
  await index.purge();
  expect(await vectorIndexes(dir)).toEqual(['near_64']);
  for (const each of [flat, index]) await each.close();
});

test('few rows among many are all compared: a small project misses nothing', async () => {
  const dir = path.join(await tempDir(), 'index');
  const index = await open(dir, ROWS);
  await index.upsert(rows);
  const { summary } = await searched(index, 'common', { filter: { project: 'p42' }, limit: 10 });
  expect(rowIdsOf(summary).sort()).toEqual(
    rowIdsOf(rows.filter((row) => row.project === 'p42').map((row) => ({ row }))).sort(),
  );
  await index.close();
});

test('an index made in an earlier run is used, and cleared with everything else', async () => {
  const dir = path.join(await tempDir(), 'index');
  const first = await open(dir, ROWS);
  await first.upsert(rows);
  await first.close();
  const again = await open(dir, ROWS);
  expect((await searched(again, `common ${textOf(7)}`, everything)).summary[0]?.score).toBeCloseTo(1, 3);
  await again.clear();
  expect(await vectorIndexes(dir)).toEqual([]);
  await again.upsert([nodeRow('a', 'alpha')]);
  expect(rowIdsOf((await searched(again, 'alpha', everything)).summary)).toEqual(['node:a']);
  await again.close();
});

test('an index that memory makes needless is dropped, and what is near is found without it', async () => {
  const dir = path.join(await tempDir(), 'index');
  const before = await open(dir, ROWS);
  await before.upsert(rows);
  await expect.poll(() => vectorIndexes(dir)).toEqual(['near_64']);
  await before.close();
  const index = await open(dir, ROWS + 1);
  await expect.poll(() => vectorIndexes(dir)).toEqual([]);
  const [hit] = (await searched(index, textOf(7), everything)).summary;
  expect(hit?.score).toBeGreaterThan(0.5);
  await index.close();
});
