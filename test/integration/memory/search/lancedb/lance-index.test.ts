import { cp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { connect } from '@lancedb/lancedb';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Embedder } from '../../../../../memory/embeddings/embedder.ts';
import { type OpenedIndex, openLanceIndex } from '../../../../../memory/search/lancedb/search-index.ts';
import type { IndexFilter, IndexRow } from '../../../../../memory/search/search-index.ts';
import { nodeRow, searchIndexContract, turnRow } from '../../../../contract/search-index.ts';
import { filesBelow, filesHolding } from '../../../../helpers/disk-rig.ts';
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

async function filled(dir: string, count = 20): Promise<void> {
  const { index } = await open(dir);
  for (let at = 0; at < count; at += 1)
    await index.put([nodeRow(`n${at}`, `topic${at} common`), turnRow(`n${at}`, `t${at}`, `raw${at}`)]);
  await index.close();
}

describe('the index in LanceDB', () => {
  searchIndexContract(async () => (await open(path.join(await tempDir(), 'index'))).index);
});

test('an index of another build is rebuilt, and nothing of it stays', async () => {
  const dir = path.join(await tempDir(), 'index');
  await filled(dir, 2);
  await rm(path.join(dir, 'made-by.json'));
  const connection = await connect(dir);
  await connection.createTable('rows', [{ row_id: 'n0', text: 'heron' }]);
  connection.close();
  const { index, rebuilt, reason } = await open(dir);
  expect([rebuilt, reason, await index.size()]).toEqual([true, 'new', { nodes: 0, rows: 0 }]);
  await index.put([nodeRow('n1', 'topic')]);
  expect([...(await index.entries()).keys()]).toEqual(['n1']);
  await index.close();
  expect(await readdir(path.dirname(dir))).toEqual(['index']);
  expect(filesHolding(dir, 'heron')).toEqual([]);
});

test('indexed rows and their term weights survive a reopening', async () => {
  const dir = path.join(await tempDir(), 'index');
  const first = await open(dir);
  expect(first).toMatchObject({ rebuilt: true, reason: 'new' });
  await first.index.close();
  await filled(dir);
  const { index, rebuilt, reason } = await open(dir);
  expect({ rebuilt, reason }).toEqual({ rebuilt: false, reason: '' });
  expect((await index.size()).rows).toBe(40);
  expect((await index.entries()).size).toBe(20);
  expect((await index.termWeights(['topic7', 'common'], {})).get('topic7')).toBeCloseTo(Math.log(1 + 39.5 / 1.5), 10);
  expect((await searched(index, 'topic7', { limit: 3 })).fts[0]?.id).toBe('n7');
  await index.close();
});

test('another embedder means a new index', async () => {
  const dir = path.join(await tempDir(), 'index');
  await filled(dir);
  const other: Embedder = { ...createHashEmbedder(), id: 'other-256' };
  const { index, rebuilt, reason } = await open(dir, other);
  expect(rebuilt).toBe(true);
  expect(reason).toContain('hash-ngram-256-v1');
  expect((await index.size()).rows).toBe(0);
  await index.put([nodeRow('a', 'alpha')]);
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
  await expect(index.put([nodeRow('a', 'alpha')])).rejects.toMatchObject({ code: 'index_failed' });
  await expect(searched(index, 'alpha', { limit: 1 })).rejects.toMatchObject({ code: 'index_failed' });
  expect((await index.size()).rows).toBe(0);
  await index.close();
});

test('rows whose texts cannot be embedded are found by their words, and written again at the next start', async () => {
  const dir = path.join(await tempDir(), 'index');
  const errors: unknown[] = [];
  const failing: Embedder = { ...createHashEmbedder(), embed: () => Promise.reject(new Error('no answer')) };
  const report = (): void => {};
  const unembedded = (error: unknown): void => void errors.push(error);
  const first = await openLanceIndex({ dir, embedder: failing, now: Date.now, report, unembedded });
  await first.index.put([nodeRow('a', 'alpha'), nodeRow('b', 'beta')]);
  const { fts, summary } = await searched(first.index, 'alpha', { limit: 5 });
  expect([fts.length, summary.length]).toEqual([1, 0]);
  expect(errors).toEqual([new Error('no answer')]);
  await first.index.close();
  const { index, rebuilt } = await open(dir);
  expect(rebuilt).toBe(false);
  expect([...(await index.entries())].map(([id, { digest }]) => [id, digest])).toEqual([
    ['a', ''],
    ['b', ''],
  ]);
  await index.put([nodeRow('a', 'alpha')]);
  expect((await searched(index, 'alpha', { limit: 5 })).summary).toHaveLength(1);
  await index.close();
});

test('a damaged or missing file gives a rebuilt index, and the damaged one is kept', async () => {
  const root = await tempDir();
  const pristine = path.join(root, 'pristine');
  await filled(pristine, 3);
  const names = filesBelow(pristine).map((file) => path.relative(pristine, file));
  let setAside = 0;
  for (const [at, name] of names.entries()) {
    const dir = path.join(root, `copy-${at}`);
    await cp(pristine, dir, { recursive: true });
    if (at % 2 === 0) await rm(path.join(dir, name));
    else await writeFile(path.join(dir, name), (await readFile(path.join(dir, name))).fill(0xa5));
    const { index, rebuilt } = await open(dir);
    if (rebuilt) setAside += (await readdir(`${dir}.damaged`).catch(() => [])).length > 0 ? 1 : 0;
    else expect((await searched(index, 'topic1', { limit: 3 })).fts[0]?.id).toBe('n1');
    await index.put([nodeRow('fresh', 'freshly written')]);
    expect((await searched(index, 'freshly', { limit: 3 })).fts[0]?.id).toBe('fresh');
    await index.close();
    await rm(dir, { recursive: true, force: true });
  }
  expect(setAside).toBeGreaterThan(0);
});

test('an index that breaks while in use fails, can be cleared, or is rebuilt by the next start', async () => {
  const dir = path.join(await tempDir(), 'index');
  await filled(dir, 5);
  const { index } = await open(dir);
  await index.put([nodeRow('x', 'extra')]);
  for (const name of await readdir(dir))
    if (name.endsWith('.lance')) await rm(path.join(dir, name), { recursive: true });
  await expect(searched(index, 'topic1')).rejects.toMatchObject({ code: 'index_unreadable' });
  await expect(index.turnTexts(['n1'], ['t1'])).rejects.toMatchObject({ code: 'index_unreadable' });
  const other = await open(dir);
  expect(other).toMatchObject({ rebuilt: true });
  await other.index.close();
  await index.clear();
  await index.put([nodeRow('y', 'again')]);
  expect((await searched(index, 'again')).fts).toHaveLength(1);
  await index.close();
  await expect(searched(index, 'again')).rejects.toMatchObject({ code: 'index_failed' });
});

test('many single commits do not pile up fragments', async () => {
  const dir = path.join(await tempDir(), 'index');
  const { index } = await open(dir);
  for (let at = 0; at < 230; at += 1) await index.put([nodeRow(`n${at}`, `topic${at} common`)]);
  await index.close();
  const data = filesBelow(dir).filter((file) => file.includes(`${path.sep}data${path.sep}`));
  expect(data.length).toBeLessThan(330);
  expect(problems).toEqual([]);
  const { index: again } = await open(dir);
  expect((await again.size()).rows).toBe(230);
  await again.close();
});

test('rows that are not indexed yet are found in the order of the indexed ones', async () => {
  const { index } = await open(path.join(await tempDir(), 'index'));
  // The later a row, the shorter, and the more it says of the heron.
  const saying = (at: number, word: string): string => ['heron', ...Array<string>(40 - at).fill(word)].join(' ');
  const rows = (from: number): IndexRow[] =>
    Array.from({ length: 20 }, (_, nth) => {
      const [id, at] = [`n${from + nth}`, from + nth];
      return turnRow(id, id, saying(at, nth % 2 === 0 ? 'reed' : 'pond'), { sessionId: `s${nth % 2}`, place: at * 9 });
    });
  const shortest = (count: number, step = 1): string[] =>
    Array.from({ length: count }, (_, nth) => `n${39 - nth * step}`);
  const best = async (filter: IndexFilter = {}) => {
    const found = await searched(index, 'heron', { filter, limit: 5 });
    return [found.raw, found.meaning].map((placed) => placed.map(({ id }) => id));
  };

  await index.put(rows(0));
  await index.put(rows(20));
  expect(await best()).toEqual([shortest(5), shortest(5)]);
  expect(await best({ sessionId: 's1' })).toEqual([shortest(5, 2), shortest(5, 2)]);
  await index.optimize();
  expect(await best()).toEqual([shortest(5), shortest(5)]);
  await index.remove(rows(0).map(({ nodeId }) => nodeId));
  await index.remove(rows(20).map(({ nodeId }) => nodeId));
  await index.put(rows(0));
  await index.put(rows(20));
  expect(await best()).toEqual([shortest(5), shortest(5)]);
  await index.close();
});

test('texts of turns are read as they were last written, before and after optimizing', async () => {
  const dir = path.join(await tempDir(), 'index');
  const turnIds = Array.from({ length: 12 }, (_, at) => `t${at}`);
  const nodeIds = turnIds.map((turnId) => `n${turnId}`);
  const said = (mark: string, of = turnIds) =>
    new Map(of.map((turnId) => [turnId, { text: `${mark} ${turnId}`, origin: 'tool' }]));
  const written = (mark: string, of = turnIds) =>
    of.map((turnId) => turnRow(`n${turnId}`, turnId, `${mark} ${turnId}`));
  const opened = await open(dir);
  for (const row of written('first')) await opened.index.put([row]);
  expect(await opened.index.turnTexts(nodeIds, [...turnIds, 'unknown'])).toEqual(said('first'));
  await opened.index.close();
  const { index } = await open(dir);
  expect(await index.turnTexts(nodeIds, turnIds)).toEqual(said('first'));
  await index.optimize();
  expect(await index.turnTexts(nodeIds, turnIds)).toEqual(said('first'));
  await index.put(written('second', ['t3', 't4']));
  await index.remove(['nt4', 'nt5']);
  const left = turnIds.filter((turnId) => !['t3', 't4', 't5'].includes(turnId));
  expect(await index.turnTexts(nodeIds, turnIds)).toEqual(new Map([...said('second', ['t3']), ...said('first', left)]));
  await index.close();
});

test('texts of turns that a search found are those of their rows now', async () => {
  const { index } = await open(path.join(await tempDir(), 'index'));
  const turnIds = ['t0', 't1', 't2', 't3'];
  const row = (turnId: string, text: string): IndexRow => turnRow(`n${turnId}`, turnId, text);
  const texts = async (ids = turnIds) => {
    const found = await index.turnTexts(
      ids.map((id) => `n${id}`),
      ids,
    );
    return [...found].map(([id, { text }]) => `${id} ${text}`).sort();
  };
  await index.put(turnIds.map((id) => row(id, 'a heron')));
  expect((await searched(index, 'heron', { limit: 10 })).raw).toHaveLength(4);
  // Other texts than those that were asked for, so that none of these is remembered.
  expect(await texts(['t3'])).toEqual(['t3 a heron']);
  await index.put([row('t0', 'a heron in reed')]);
  await index.remove(['nt1']);
  await index.optimize();
  expect(await texts()).toEqual(['t0 a heron in reed', 't2 a heron', 't3 a heron']);
  await index.close();
});

test('a full queue refuses rows instead of growing, and accepts rows again later', async () => {
  const dir = path.join(await tempDir(), 'index');
  const { index } = await open(dir);
  const rows = Array.from({ length: 3_000 }, (_, at) => nodeRow(`n${at}`, `topic${at}`));
  const first = index.put(rows);
  const second = index.put(rows.map((row) => ({ ...row, nodeId: `${row.nodeId}-b` })));
  await expect(second).rejects.toMatchObject({ code: 'index_failed' });
  await first;
  await index.put([nodeRow('late', 'late')]);
  expect((await index.size()).rows).toBe(3_001);
  await index.close();
});

test('a second handle that opens the same directory does not lose rows', async () => {
  const dir = path.join(await tempDir(), 'index');
  await filled(dir, 2);
  const [left, right] = [await open(dir), await open(dir)];
  await Promise.all([
    ...Array.from({ length: 5 }, (_, at) => left.index.put([nodeRow(`l${at}`, 'left')])),
    ...Array.from({ length: 5 }, (_, at) => right.index.put([nodeRow(`r${at}`, 'right')])),
  ]);
  await left.index.close();
  await right.index.close();
  const { index } = await open(dir);
  expect((await index.size()).rows).toBe(14);
  await index.close();
});

test('the directory is for its owner alone', async () => {
  const dir = path.join(await tempDir(), 'index');
  await filled(dir, 1);
  expect((await stat(dir)).mode & 0o777).toBe(0o700);
});

test('nodes whose turns were out of the index when it was killed are written again', async () => {
  const dir = path.join(await tempDir(), 'index');
  const rows = (nodeId: string, place: number, text: string): IndexRow[] => [
    nodeRow(nodeId, text),
    turnRow(nodeId, `t of ${nodeId}`, text, { place }),
  ];
  const { index } = await open(dir);
  await index.put([...rows('a', 1, 'heron'), ...rows('b', 2, 'lynx')]);
  const connection = await connect(dir);
  const table = Object.getPrototypeOf(await connection.openTable((await connection.tableNames())[0] ?? ''));
  // The window of the second turn holds words of the first one, which others replace.
  const adding = vi.spyOn(table, 'add').mockRejectedValueOnce(new Error('killed'));
  await expect(index.put(rows('a', 1, 'otter'))).rejects.toThrow();
  adding.mockRestore();
  await index.close();
  // A write that fails leaves this behind, a kill does not.
  await rm(path.join(dir, 'REBUILD'));
  const { index: later, rebuilt } = await open(dir);
  expect(rebuilt).toBe(false);
  expect((await later.entries()).get('b')).toMatchObject({ digest: '', turns: [] });
  await later.put([...rows('a', 1, 'otter'), ...rows('b', 2, 'lynx')]);
  await later.close();
  const last = await open(dir);
  expect((await last.index.entries()).get('b')).toMatchObject({ digest: 'digest of b', turns: ['t of b'] });
  await last.index.close();
});

test('after optimizing no byte of what was removed or replaced is on disk', async () => {
  const dir = path.join(await tempDir(), 'index');
  await filled(dir, 60);
  const { index } = await open(dir);
  await index.put([
    nodeRow('x', 'zebrafishsecret one'),
    turnRow('x', 'tx', 'zebrafishraw', { place: 1 }),
    nodeRow('y', 'lynxold'),
    turnRow('z', 'tz', 'otter', { place: 2 }),
  ]);
  await index.put([nodeRow('y', 'lynxnew')]);
  expect(filesHolding(dir, 'zebrafish')).not.toEqual([]);
  await index.remove(['x']);
  await index.close();
  // A process that ended meanwhile changes nothing about it.
  const { index: later } = await open(dir);
  await later.optimize();
  for (const gone of ['zebrafish', 'lynxold']) expect(filesHolding(dir, gone)).toEqual([]);
  expect(filesHolding(dir, 'lynxnew')).not.toEqual([]);
  expect((await later.size()).rows).toBe(122);
  await later.close();
  const again = await open(dir);
  expect(again.rebuilt).toBe(false);
  expect((await again.index.size()).rows).toBe(122);
  expect((await searched(again.index, 'lynxnew', { limit: 3 })).fts[0]?.id).toBe('y');
  await again.index.close();
});
