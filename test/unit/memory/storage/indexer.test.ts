import { expect, test } from 'vitest';
import { silentLog } from '../../../../common/log.ts';
import { createTaskQueue } from '../../../../memory/ingest/task-queue.ts';
import type { IndexRow } from '../../../../memory/search/search-index.ts';
import { createIndexer } from '../../../../memory/storage/indexer.ts';
import { createNodeRegistry } from '../../../../memory/storage/node-registry.ts';
import { createHashEmbedder } from '../../../helpers/hash-embedder.ts';
import { createInMemorySearchIndex } from '../../../helpers/in-memory-search-index.ts';
import { makeNode } from '../../../helpers/nodes.ts';

const SESSIONS = 250;
const nodes = Array.from({ length: SESSIONS }, (_, at) =>
  makeNode({
    node_id: `mem_20260301_101500_${at.toString(16).padStart(6, '0')}`,
    session_id: `session-${at}`,
    turns: [`end-${at}`],
    facts: [],
  }),
);

test.each(['reconcile', 'rebuild'] as const)('%s writes short sessions together, and all of them', async (way) => {
  const writes: (readonly IndexRow[])[] = [];
  const index = createInMemorySearchIndex(createHashEmbedder());
  const counted = {
    ...index,
    put: (rows: readonly IndexRow[]) => {
      writes.push(rows);
      return index.put(rows);
    },
  };
  const catalogue = createNodeRegistry();
  catalogue.put(nodes);
  const textsOf = async (sessionId: string) => {
    const turnId = sessionId.replace('session', 'end');
    return [{ turnId, atMs: 1, origin: 'user' as const, user: `said in ${sessionId}`, parts: [] }];
  };
  const indexer = createIndexer({
    sessionOf: () => undefined,
    index: counted,
    catalogue,
    textsOf,
    taskQueue: createTaskQueue(),
    log: silentLog,
  });
  const told: string[] = [];
  const progress = (done: number, total: number): void => void told.push(`${done} of ${total}`);
  if (way === 'reconcile') await indexer.reconcile(() => false, progress);
  else await indexer.rebuild(progress);
  expect(told.slice(0, 3)).toEqual(['0 of 250', '100 of 250', '200 of 250']);
  expect(writes.map((rows) => rows.filter(({ kind }) => kind === 'node').length)).toEqual([100, 100, 50]);
  const entries = await index.entries();
  expect(nodes.map(({ node_id }) => entries.get(node_id)?.turns)).toEqual(nodes.map(({ turns }) => turns));
});

test('an older node that is written along with a batch keeps the rows of its turns', async () => {
  const said = (turnId: string, atMs: number) => ({
    turnId,
    atMs,
    origin: 'user' as const,
    user: `said at ${turnId}`,
    parts: [],
  });
  const turns = [said('end-0', 1), said('end-1', 2)];
  const index = createInMemorySearchIndex(createHashEmbedder());
  const catalogue = createNodeRegistry();
  const indexer = createIndexer({
    sessionOf: () => undefined,
    index,
    catalogue,
    textsOf: async () => turns,
    taskQueue: createTaskQueue(),
    log: silentLog,
  });
  const [older, fresh] = nodes.slice(0, 2).map((node) => ({ ...node, session_id: 'one' }));
  if (older === undefined || fresh === undefined) throw new Error('there are nodes');
  catalogue.put([older, fresh]);
  indexer.upsert([fresh, older], turns.slice(1));
  await indexer.settled();
  const entries = await index.entries();
  expect(entries.get(older.node_id)?.turns).toEqual(['end-0']);
  expect(entries.get(fresh.node_id)?.turns).toEqual(['end-1']);
});
