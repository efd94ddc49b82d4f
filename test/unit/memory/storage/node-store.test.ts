import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createPriority } from '../../../../common/async.ts';
import { silentLog } from '../../../../common/log.ts';
import { createTaskQueue, type TaskQueue } from '../../../../memory/ingest/task-queue.ts';
import { isRedirect } from '../../../../memory/model/node.ts';
import type { SearchIndex } from '../../../../memory/search/search-index.ts';
import { contentDigest, createIndexer } from '../../../../memory/storage/index-writer.ts';
import { createNodeRegistry, type NodeRegistry } from '../../../../memory/storage/node-registry.ts';
import { createStore, type Store } from '../../../../memory/storage/node-store.ts';
import { createHashEmbedder } from '../../../helpers/hash-embedder.ts';
import { createInMemorySearchIndex } from '../../../helpers/in-memory-search-index.ts';
import { makeNode } from '../../../helpers/nodes.ts';
import { applyEdit, randomEdit } from '../../../helpers/random-edits.ts';
import { createTextFiles, readTexts, type TextFiles } from '../../../helpers/text-files.ts';

interface Shelf {
  readonly files: TextFiles;
  readonly catalogue: NodeRegistry;
  readonly index: SearchIndex;
  readonly store: Store;
  readonly taskQueue: TaskQueue;
}

const getId = (at: number): string => `mem_20260301_101500_${at.toString(16).padStart(6, '0')}`;
const turnText = (turnId: string) => ({
  turnId,
  atMs: 1,
  origin: 'user' as const,
  user: `said in ${turnId}`,
  parts: [],
});
const TURNS = Array.from({ length: 12 }, (_, at) => turnText(`end-${at}`));

async function shelf(
  files = createTextFiles(),
  index = createInMemorySearchIndex(createHashEmbedder()),
): Promise<Shelf> {
  const catalogue = createNodeRegistry();
  const taskQueue = createTaskQueue();
  const indexer = createIndexer({
    index,
    catalogue,
    getTexts: async () => TURNS,
    getSession: () => undefined,
    taskQueue,
    priority: createPriority(),
    log: silentLog,
  });
  const dismissed: string[] = [];
  const list = {
    load: async () => dismissed,
    add: async (turnIds: readonly string[]) => void dismissed.push(...turnIds),
  };
  const store = createStore({
    nodeFiles: files,
    dismissed: list,
    index,
    catalogue,
    indexer,
    snapshot: async () => 's',
  });
  await store.open();
  await indexer.reconcile(
    () => false,
    () => {},
  );
  return { files, catalogue, index, store, taskQueue };
}

async function expectAgreement({ files, catalogue, index, store, taskQueue }: Shelf): Promise<void> {
  await taskQueue.idle();
  const { nodes, problems } = readTexts(files.texts);
  const byId = new Map(nodes.map((node) => [node.node_id, node]));
  const held = new Map(catalogue.every().map((node) => [node.node_id, node]));
  // vitest's own comparison takes most of the time of ten thousand edits; it is kept for showing the difference.
  if (!isDeepStrictEqual(held, byId)) expect(held).toEqual(byId);
  expect(store.problems().length).toBe(problems.length);
  const live = nodes.filter((node) => !isRedirect(node));
  const entries = await index.entries();
  expect(new Map([...entries].map(([id, { digest }]) => [id, digest]))).toEqual(
    new Map(live.map((node) => [node.node_id, contentDigest(node)])),
  );
  const indexed = new Set([...entries.values()].flatMap(({ turns }) => turns));
  const stoodFor = new Set(
    live.flatMap((node) => node.turns).filter((turnId) => TURNS.some((turn) => turn.turnId === turnId)),
  );
  expect(indexed).toEqual(stoodFor);
}

const sound = async (): Promise<string> => {
  const files = createTextFiles();
  await files.save([0, 1, 2].map((at) => makeNode({ node_id: getId(at), turns: [`end-${at}`], written_by: 'claude' })));
  const texts = [...files.texts.values()];
  return (
    texts[0] +
    texts
      .slice(1)
      .map((text) => text.slice(text.indexOf('## ')))
      .join('')
  );
};

test('an edit that follows another one while it is read stays as it is', async () => {
  const files = createTextFiles();
  await files.save([makeNode({ node_id: getId(1), written_by: 'claude', summary: 'deploy with make ship' })]);
  const rig = await shelf(files);
  const edit = (from: string, to: string): void => {
    for (const [file, text] of files.texts) files.texts.set(file, text.replace(from, to));
  };
  edit('make ship', 'make fly');
  const { load } = files;
  files.load = async () => {
    const loaded = await load();
    edit('make fly', 'make sail');
    return loaded;
  };
  await rig.store.refresh();
  expect([...files.texts.values()].join()).toContain('make sail');
  await rig.store.refresh();
  expect(rig.catalogue.get(getId(1))).toMatchObject({ summary: 'deploy with make sail', author: { by: 'user' } });
  await expectAgreement(rig);
});

test('ten thousand random edits keep catalogue, index and files in agreement', async () => {
  const whole = await sound();
  let edits = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(randomEdit, { minLength: 20, maxLength: 20, size: 'max' }), async (made) => {
      const shelved = await shelf();
      shelved.files.texts = new Map([['p/f0.md', whole]]);
      await shelved.store.refresh();
      for (const edit of made) {
        shelved.files.texts = applyEdit(shelved.files.texts, edit, whole);
        await shelved.store.refresh();
        await expectAgreement(shelved);
        edits += 1;
      }
      // A restart on the same files and index finds nothing to do.
      const again = await shelf(shelved.files, shelved.index as ReturnType<typeof createInMemorySearchIndex>);
      await expectAgreement(again);
    }),
    { numRuns: 500 },
  );
  expect(edits).toBeGreaterThanOrEqual(10_000);
}, 60_000);

test('edits made while no engine ran are loaded at the next start', async () => {
  const whole = await sound();
  await fc.assert(
    fc.asyncProperty(fc.array(randomEdit, { minLength: 1, maxLength: 10 }), async (made) => {
      const first = await shelf();
      first.files.texts = new Map([['p/f0.md', whole]]);
      await first.store.refresh();
      await first.taskQueue.idle();
      for (const edit of made) first.files.texts = applyEdit(first.files.texts, edit, whole);
      await expectAgreement(await shelf(first.files, first.index as ReturnType<typeof createInMemorySearchIndex>));
    }),
    { numRuns: 100 },
  );
});
