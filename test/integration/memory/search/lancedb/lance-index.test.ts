import { cp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { connect } from '@lancedb/lancedb';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Embedder } from '../../../../../memory/embeddings/embedder.ts';
import type { OpenedIndex } from '../../../../../memory/search/lancedb/lance-index.ts';
import { openLanceIndex } from '../../../../../memory/search/lancedb/lance-index.ts';
import { nodeIndexContract, nodeRow, turnRow } from '../../../../contract/node-index.ts';
import { createHashEmbedder } from '../../../../helpers/hash-embedder.ts';
import { searched } from '../../../../helpers/lane-hits.ts';
import { tempDirs } from '../../../../helpers/temp-dir.ts';

const tempDir = tempDirs();

let problems: string[] = [];
beforeEach(() => {
  problems = [];
});

const open = (dir: string, embedder: Embedder = createHashEmbedder()): Promise<OpenedIndex> =>
  openLanceIndex({ dir, embedder, now: Date.now, report: ({ message }) => problems.push(message) });

async function filesBelow(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
}

async function filled(dir: string, count = 20): Promise<void> {
  const { index } = await open(dir);
  for (let at = 0; at < count; at += 1)
    await index.upsert([nodeRow(`n${at}`, `topic${at} common`), turnRow(`n${at}`, `t${at}`, `raw${at}`)]);
  await index.close();
}

describe('the index in LanceDB', () => {
  nodeIndexContract(async () => (await open(path.join(await tempDir(), 'index'))).index);
});

test('an index of another build is made anew, and nothing of it stays', async () => {
  const dir = path.join(await tempDir(), 'index');
  await filled(dir, 2);
  const connection = await connect(dir);
  const [name = ''] = await connection.tableNames();
  await connection.dropTable(name);
  await connection.createTable(name, [{ row_id: 'n0', text: 'heron' }]);
  connection.close();
  const { index, rebuilt, reason } = await open(dir);
  expect([rebuilt, reason, await index.count()]).toEqual([true, 'it has the columns of another comet-cc', 0]);
  await index.upsert([nodeRow('n1', 'topic')]);
  expect(await index.nodeIds()).toEqual(new Set(['n1']));
  await index.close();
  expect(await readdir(path.dirname(dir))).toEqual(['index']);
  for (const file of await filesBelow(dir)) expect((await readFile(file)).includes('heron'), file).toBe(false);
});

test('what was indexed is there again after opening anew, with its term weights', async () => {
  const dir = path.join(await tempDir(), 'index');
  const first = await open(dir);
  expect(first).toMatchObject({ rebuilt: true, reason: 'new' });
  await first.index.close();
  await filled(dir);
  const { index, rebuilt, reason } = await open(dir);
  expect({ rebuilt, reason }).toEqual({ rebuilt: false, reason: '' });
  expect(await index.count()).toBe(40);
  expect((await index.nodeIds()).size).toBe(20);
  expect(index.termWeights(['topic7', 'common'], {}).get('topic7')).toBeCloseTo(Math.log(1 + 39.5 / 1.5), 10);
  expect((await searched(index, 'topic7', { filter: {}, limit: 3 })).fts[0]?.row.node_id).toBe('n7');
  await index.close();
});

test('another embedder means a new index', async () => {
  const dir = path.join(await tempDir(), 'index');
  await filled(dir);
  const other: Embedder = { ...createHashEmbedder(), id: 'other-256' };
  const { index, rebuilt, reason } = await open(dir, other);
  expect(rebuilt).toBe(true);
  expect(reason).toContain('hash-ngram-256-v1');
  expect(await index.count()).toBe(0);
  await index.upsert([nodeRow('a', 'alpha')]);
  await index.close();
  expect((await open(dir, other)).rebuilt).toBe(false);
  const wider: Embedder = { ...createHashEmbedder(), id: 'wide', dimensions: 512 };
  expect(await open(dir, wider)).toMatchObject({ rebuilt: true });
});

test('a vector of the wrong length is refused and nothing is written', async () => {
  const dir = path.join(await tempDir(), 'index');
  const { index } = await open(dir, {
    ...createHashEmbedder(),
    embed: async (texts) =>
      texts.map(() => ({ vector: new Float32Array(3), scriptVector: null, pieces: new Uint16Array(0) })),
    embedQuery: async () => ({ vector: new Float32Array(3), comparedWith: 'vector' }),
  });
  await expect(index.upsert([nodeRow('a', 'alpha')])).rejects.toMatchObject({ code: 'index_failed' });
  await expect(searched(index, 'alpha', { filter: {}, limit: 1 })).rejects.toMatchObject({ code: 'index_failed' });
  expect(await index.count()).toBe(0);
  await index.close();
});

test('rows whose texts cannot be embedded are found by their words, and written again at the next start', async () => {
  const dir = path.join(await tempDir(), 'index');
  const errors: unknown[] = [];
  const failing: Embedder = { ...createHashEmbedder(), embed: () => Promise.reject(new Error('no answer')) };
  const report = (): void => {};
  const unembedded = (error: unknown): void => void errors.push(error);
  const first = await openLanceIndex({ dir, embedder: failing, now: Date.now, report, unembedded });
  await first.index.upsert([nodeRow('a', 'alpha'), nodeRow('b', 'beta')]);
  const { fts, summary } = await searched(first.index, 'alpha', { filter: {}, limit: 5 });
  expect([fts.length, summary.length]).toEqual([1, 0]);
  expect(errors).toEqual([new Error('no answer')]);
  await first.index.close();
  const { index, rebuilt } = await open(dir);
  expect(rebuilt).toBe(false);
  expect([...(await index.entries())].map(([id, { digest }]) => [id, digest])).toEqual([
    ['a', ''],
    ['b', ''],
  ]);
  await index.upsert([nodeRow('a', 'alpha')]);
  expect((await searched(index, 'alpha', { filter: {}, limit: 5 })).summary).toHaveLength(1);
  await index.close();
});

test('a damaged or missing file gives a rebuilt index, and the damaged one is kept', async () => {
  const root = await tempDir();
  const pristine = path.join(root, 'pristine');
  await filled(pristine, 3);
  const names = (await filesBelow(pristine)).map((file) => path.relative(pristine, file));
  let setAside = 0;
  for (const [at, name] of names.entries()) {
    const dir = path.join(root, `copy-${at}`);
    await cp(pristine, dir, { recursive: true });
    if (at % 2 === 0) await rm(path.join(dir, name));
    else await writeFile(path.join(dir, name), (await readFile(path.join(dir, name))).fill(0xa5));
    const { index, rebuilt } = await open(dir);
    if (rebuilt) setAside += (await readdir(`${dir}.damaged`).catch(() => [])).length > 0 ? 1 : 0;
    else expect((await searched(index, 'topic1', { filter: {}, limit: 3 })).fts[0]?.row.node_id).toBe('n1');
    await index.upsert([nodeRow('fresh', 'freshly written')]);
    expect((await searched(index, 'freshly', { filter: {}, limit: 3 })).fts[0]?.row.node_id).toBe('fresh');
    await index.close();
    await rm(dir, { recursive: true, force: true });
  }
  expect(setAside).toBeGreaterThan(0);
});

test('an index that breaks while in use answers from memory what it can, can be cleared, or is made anew by the next start', async () => {
  const dir = path.join(await tempDir(), 'index');
  await filled(dir, 5);
  const { index } = await open(dir);
  await index.upsert([nodeRow('x', 'extra')]);
  await rm(path.join(dir, 'rows.lance'), { recursive: true });
  const { fts, summary } = await searched(index, 'topic1', { filter: {}, limit: 1 });
  expect([fts.length, summary.length]).toEqual([1, 1]);
  await expect(index.turnWords(['t1'])).rejects.toMatchObject({ code: 'index_failed' });
  const anew = await open(dir);
  expect(anew).toMatchObject({ rebuilt: true });
  await anew.index.close();
  await index.clear();
  await index.upsert([nodeRow('y', 'again')]);
  expect((await searched(index, 'again', { filter: {}, limit: 1 })).fts).toHaveLength(1);
  await index.close();
  await expect(searched(index, 'again', { filter: {}, limit: 1 })).rejects.toMatchObject({ code: 'index_failed' });
});

test('many single commits do not pile up fragments', async () => {
  const dir = path.join(await tempDir(), 'index');
  const { index } = await open(dir);
  for (let at = 0; at < 230; at += 1) await index.upsert([nodeRow(`n${at}`, `topic${at} common`)]);
  await index.close();
  const data = (await filesBelow(dir)).filter((file) => file.includes(`${path.sep}data${path.sep}`));
  expect(data.length).toBeLessThan(330);
  expect(problems).toEqual([]);
  const { index: again } = await open(dir);
  expect(await again.count()).toBe(230);
  await again.close();
});

test('what was said is read as it was last written: before tidying, after it, and where there is too much to hold', async () => {
  const dir = path.join(await tempDir(), 'index');
  const turnIds = Array.from({ length: 12 }, (_, at) => `t${at}`);
  const said = (mark: string, of = turnIds) =>
    new Map(of.map((turnId) => [turnId, { text: `${mark} ${turnId}`, origin: 'tool' }]));
  const written = (mark: string, of = turnIds) =>
    of.map((turnId) => turnRow(`n${turnId}`, turnId, `${mark} ${turnId}`));
  const opened = await open(dir);
  for (const row of written('first')) await opened.index.upsert([row]);
  expect(await opened.index.turnWords([...turnIds, 'unknown'])).toEqual(said('first'));
  await opened.index.close();
  const { index } = await open(dir);
  expect(await index.turnWords(turnIds)).toEqual(said('first'));
  await index.purge();
  expect(await index.turnWords(turnIds)).toEqual(said('first'));
  await index.upsert(written('second', ['t3', 't4']));
  await index.removeNodes(['nt4', 'nt5']);
  const left = turnIds.filter((turnId) => !['t3', 't4', 't5'].includes(turnId));
  expect(await index.turnWords(turnIds)).toEqual(new Map([...said('second', ['t3']), ...said('first', left)]));
  const long = 'long '.repeat(30_000);
  const many = Array.from({ length: 20 }, (_, at) => turnRow(`m${at}`, `u${at}`, `${at} ${long}`));
  await index.upsert(many);
  expect([...(await index.turnWords(['u0', 'u19', 't3'])).keys()].sort()).toEqual(['t3', 'u0', 'u19']);
  await index.close();
});

test('a queue that runs over refuses rows instead of growing, and goes on', async () => {
  const dir = path.join(await tempDir(), 'index');
  const { index } = await open(dir);
  const rows = Array.from({ length: 3_000 }, (_, at) => nodeRow(`n${at}`, `topic${at}`));
  const first = index.upsert(rows);
  const second = index.upsert(rows.map((row) => ({ ...row, row_id: `${row.row_id}-b` })));
  await expect(second).rejects.toMatchObject({ code: 'index_failed' });
  await first;
  await index.upsert([nodeRow('late', 'late')]);
  expect(await index.count()).toBe(3_001);
  await index.close();
});

test('a second handle that opens the same directory does not lose rows', async () => {
  const dir = path.join(await tempDir(), 'index');
  await filled(dir, 2);
  const [left, right] = [await open(dir), await open(dir)];
  await Promise.all([
    ...Array.from({ length: 5 }, (_, at) => left.index.upsert([nodeRow(`l${at}`, 'left')])),
    ...Array.from({ length: 5 }, (_, at) => right.index.upsert([nodeRow(`r${at}`, 'right')])),
  ]);
  await left.index.close();
  await right.index.close();
  const { index } = await open(dir);
  expect(await index.count()).toBe(14);
  await index.close();
});

test('the directory is for its owner alone', async () => {
  const dir = path.join(await tempDir(), 'index');
  await filled(dir, 1);
  expect((await stat(dir)).mode & 0o777).toBe(0o700);
});

test('after a purge no byte of what was removed or replaced is on disk', async () => {
  const dir = path.join(await tempDir(), 'index');
  await filled(dir, 60);
  const { index } = await open(dir);
  await index.upsert([
    nodeRow('x', 'zebrafishsecret one'),
    turnRow('x', 'tx', 'zebrafishraw'),
    nodeRow('y', 'lynxold'),
  ]);
  await index.upsert([nodeRow('y', 'lynxnew')]);
  const holding = async (word: string): Promise<string[]> => {
    const found = await Promise.all((await filesBelow(dir)).map(async (file) => [file, await readFile(file)] as const));
    return found.filter(([, bytes]) => bytes.includes(word)).map(([file]) => file);
  };
  expect(await holding('zebrafish')).not.toEqual([]);
  await index.removeNodes(['x']);
  await index.purge();
  for (const gone of ['zebrafish', 'lynxold']) expect(await holding(gone)).toEqual([]);
  expect(await holding('lynxnew')).not.toEqual([]);
  expect(await index.count()).toBe(121);
  await index.close();
  const again = await open(dir);
  expect(again.rebuilt).toBe(false);
  expect(await again.index.count()).toBe(121);
  expect((await searched(again.index, 'lynxnew', { filter: {}, limit: 3 })).fts[0]?.row.node_id).toBe('y');
  await again.index.close();
});
