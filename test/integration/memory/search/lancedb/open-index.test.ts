import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Embedder } from '../../../../../memory/embeddings/embedder.ts';
import { getEmbedder } from '../../../../../memory/embeddings/open-embedder.ts';
import { createStaticEmbedder } from '../../../../../memory/embeddings/static-embedder.ts';
import type { Memory } from '../../../../../memory/index.ts';
import { createSucceededIndex, openIndexHome } from '../../../../../memory/search/lancedb/open-index.ts';
import type { SearchIndex } from '../../../../../memory/search/search-index.ts';
import { nodeRow, searchIndexContract } from '../../../../contract/search-index.ts';
import { createHashEmbedder } from '../../../../helpers/hash-embedder.ts';
import { createInMemorySearchIndex } from '../../../../helpers/in-memory-search-index.ts';
import { searched } from '../../../../helpers/lane-hits.ts';
import { createDisk, type Disk, openRig } from '../../../../helpers/memory-rig.ts';
import { makeNode } from '../../../../helpers/nodes.ts';
import { tempDirs } from '../../../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const NODES = 30;

/** Holds back what it is asked for documents until `open` is called. */
function gated(embedder: Embedder): Embedder & { open(): void; readonly asked: number } {
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  let asked = 0;
  return {
    ...embedder,
    open: () => open(),
    get asked() {
      return asked;
    },
    async embed(texts) {
      asked += texts.length;
      await gate;
      return embedder.embed(texts);
    },
  };
}

const getKnown = (id: string): Embedder | null =>
  [createHashEmbedder(), createStaticEmbedder()].find((each) => each.id === id) ?? null;

function openHome(
  dir: string,
  embedder: Embedder,
  getEmbedder = getKnown,
): Promise<{ readonly index: SearchIndex; readonly rebuilt: boolean }> {
  return openIndexHome({ dir, embedder, getEmbedder, now: Date.now, report: () => {} });
}

async function diskWithNodes(): Promise<Disk> {
  const disk = createDisk();
  await disk.nodeFiles.save(
    Array.from({ length: NODES }, (_, at) =>
      makeNode({
        node_id: `mem_20260301_111500_${at.toString(16).padStart(6, '0')}`,
        session_id: `s-${at % 3}`,
        summary: `the service number ${at} called ${['billing', 'search', 'mail'][at % 3]} listens on port ${7_000 + at}`,
        turns: [],
        written_by: 'claude',
      }),
    ),
  );
  return disk;
}

async function found(memory: Memory): Promise<string | undefined> {
  const [best] = await memory.recall.search('which port does service number 17 listen on', { top: 1 });
  return best?.node.summary;
}

const seventeen = expect.stringContaining('7017');
const folders = async (dir: string): Promise<string[]> =>
  (await readdir(dir)).map((name) => name.split('-')[0] as string);
const getVectors = async (index: SearchIndex): Promise<number> =>
  (await searched(index, 'billing service port', { limit: 60 })).summary.length;

describe('an index that is succeeded by another', () => {
  searchIndexContract(async () => {
    const embedder = createHashEmbedder();
    const taken = async (): Promise<() => Promise<void>> => async () => {};
    const next = createInMemorySearchIndex(createStaticEmbedder());
    return createSucceededIndex({ serving: createInMemorySearchIndex(embedder), embedder, next, taken });
  });

  test('is written to with its successor, and read alone until that one takes over', async () => {
    const [serving, next] = [
      createInMemorySearchIndex(createHashEmbedder()),
      createInMemorySearchIndex(createStaticEmbedder()),
    ];
    const ended: string[] = [];
    const index = createSucceededIndex({
      serving: { ...serving, close: async () => void ended.push('index') },
      embedder: { ...createHashEmbedder(), close: async () => void ended.push('embedder') },
      next,
      taken: async () => {
        ended.push('taken');
        return async () => void ended.push('cleaned');
      },
    });
    await index.put([nodeRow('a', 'alpha')]);
    await index.successor?.()?.put([nodeRow('b', 'beta')]);
    const nodes = async (each: SearchIndex): Promise<number> => (await each.size()).nodes;
    expect([await nodes(index), await nodes(serving), await nodes(next)]).toEqual([1, 1, 2]);
    await index.remove(['a']);
    expect([await nodes(serving), await nodes(next)]).toEqual([0, 1]);
    await index.successor?.()?.takeOver();
    expect(ended).toEqual(['taken', 'index', 'embedder', 'cleaned']);
    expect(await nodes(index)).toBe(1);
    expect(index.successor?.()).toBeNull();
  });
});

test.each([
  ['static-minilm-128-v1', 128],
  ['minilm-384-fp16-v1', 384],
])('the index of %s, which is gone, serves by words until the new one is complete', async (id, dimensions) => {
  const dir = path.join(await tempDir(), 'index');
  const disk = await diskWithNodes();
  const before = await openHome(dir, createHashEmbedder(dimensions, id));
  const first = await openRig(disk, { index: before.index });
  await first.maintenance.flush(20_000);
  await first.maintenance.close();

  const embedder = gated(createStaticEmbedder());
  const { index } = await openHome(dir, embedder, (former) => getEmbedder(former, (each) => each));
  const memory = await openRig(disk, { index });
  await expect.poll(() => embedder.asked).toBeGreaterThan(0);
  expect(memory.maintenance.status().reindex).toEqual({ done: 0, total: NODES });
  expect(await found(memory)).toEqual(seventeen);
  embedder.open();
  await expect.poll(() => memory.maintenance.status().reindex).toBeNull();
  expect(await found(memory)).toEqual(seventeen);
  expect(await folders(dir)).toEqual(['static']);
  await memory.maintenance.close();
});

test('the index of another embedder is filled while the old one serves, and then takes its place', async () => {
  const dir = path.join(await tempDir(), 'index');
  const disk = await diskWithNodes();
  const before = await openHome(dir, createHashEmbedder());
  const first = await openRig(disk, { index: before.index });
  await first.maintenance.flush(20_000);
  await first.maintenance.close();

  const embedder = gated(createStaticEmbedder());
  const { index, rebuilt } = await openHome(dir, embedder);
  expect(rebuilt).toBe(false);
  const memory = await openRig(disk, { index });
  expect(memory.maintenance.status().reindex).toEqual({ done: 0, total: NODES });
  await expect.poll(() => embedder.asked).toBeGreaterThan(0);
  expect(memory.maintenance.status().reindex).toEqual({ done: 0, total: NODES });
  expect(await found(memory)).toEqual(seventeen);
  expect((await folders(dir)).sort()).toEqual(['hash', 'static']);

  embedder.open();
  await expect.poll(() => memory.maintenance.status().reindex).toBeNull();
  expect(await folders(dir)).toEqual(['static']);
  expect(index.successor?.()).toBeNull();
  expect(await found(memory)).toEqual(seventeen);
  expect(await getVectors(index)).toBe(NODES);
  await memory.maintenance.close();

  const again = await openHome(dir, createStaticEmbedder());
  expect(again.index.successor?.() ?? null).toBeNull();
  expect((await again.index.size()).rows).toBe(NODES);
  await again.index.close();
});

test('a process that ends before the new index is complete leaves the old one, and the next process continues', async () => {
  const dir = path.join(await tempDir(), 'index');
  const disk = await diskWithNodes();
  const before = await openHome(dir, createHashEmbedder());
  const first = await openRig(disk, { index: before.index });
  await first.maintenance.flush(20_000);
  await first.maintenance.close();

  // It is never closed: nobody gets to tidy up in a process that is killed.
  const killed = await openHome(dir, createStaticEmbedder());
  await killed.index.successor?.()?.put([nodeRow('mem_of_nobody', 'a node that is gone by the next start')]);

  const embedder = gated(createStaticEmbedder());
  const { index } = await openHome(dir, embedder);
  const memory = await openRig(disk, { index });
  await expect.poll(() => embedder.asked).toBeGreaterThan(0);
  expect(await found(memory)).toEqual(seventeen);
  embedder.open();
  await expect.poll(() => memory.maintenance.status().reindex).toBeNull();
  expect(await folders(dir)).toEqual(['static']);
  expect([...(await index.entries()).keys()].filter((id) => id === 'mem_of_nobody')).toEqual([]);
  await memory.maintenance.close();
});

test('while texts cannot be embedded the old index serves on', async () => {
  const dir = path.join(await tempDir(), 'index');
  const disk = await diskWithNodes();
  const before = await openHome(dir, createHashEmbedder());
  const first = await openRig(disk, { index: before.index });
  await first.maintenance.flush(20_000);
  await first.maintenance.close();

  const summaries = new Set<string>();
  const failing: Embedder = {
    ...createStaticEmbedder(),
    embed(texts) {
      for (const text of texts) if (/listens on port 70\d\d/.test(text)) summaries.add(text);
      return Promise.reject(new Error('no answer'));
    },
  };
  const { index } = await openHome(dir, failing);
  const memory = await openRig(disk, { index });
  await expect.poll(() => summaries.size).toBe(NODES);
  await expect.poll(() => memory.maintenance.status().reindex).toBeNull();
  expect(index.successor?.()).not.toBeNull();
  const because = expect.stringContaining(`the old one serves until a restart: ${NODES} memories lack vectors`);
  expect(memory.maintenance.status().problems).toEqual([{ file: 'embedder', message: because }]);
  expect(await getVectors(index)).toBe(NODES);
  await memory.maintenance.close();
  expect((await folders(dir)).sort()).toEqual(['hash', 'static']);
});

test('without the old embedder the new index serves at once, and foreign files are removed', async () => {
  const dir = path.join(await tempDir(), 'index');
  const gone: Embedder = { ...createHashEmbedder(), id: 'endpoint-example-256' };
  const old = await openHome(dir, gone);
  await old.index.put([nodeRow('a', 'alpha')]);
  await old.index.close();
  await mkdir(path.join(dir, 'rows.lance'));
  await writeFile(path.join(dir, 'rows.lance', 'file'), '');
  const { index, rebuilt } = await openHome(dir, createStaticEmbedder());
  expect([rebuilt, index.successor?.() ?? null]).toEqual([true, null]);
  expect(await folders(dir)).toEqual(['static']);
  await index.close();
});

test('a folder that cannot be one is told as an error of the index', async () => {
  const dir = path.join(await tempDir(), 'index');
  await writeFile(dir, 'a file');
  await expect(openHome(dir, createStaticEmbedder())).rejects.toMatchObject({ code: 'index_failed' });
});
