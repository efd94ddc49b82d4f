import { expect, test } from 'vitest';
import { createPriority } from '../../../../common/async.ts';
import { silentLog } from '../../../../common/log.ts';
import { createTaskQueue } from '../../../../memory/ingest/task-queue.ts';
import type { TurnText } from '../../../../memory/model/turn.ts';
import type { IndexRow } from '../../../../memory/search/search-index.ts';
import { createIndexer, createSessionTurns, getRows } from '../../../../memory/storage/index-writer.ts';
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
  const getTexts = async (sessionId: string) => {
    const turnId = sessionId.replace('session', 'end');
    return [{ turnId, atMs: 1, origin: 'user' as const, user: `said in ${sessionId}`, parts: [] }];
  };
  const indexer = createIndexer({
    getSession: () => undefined,
    index: counted,
    catalogue,
    getTexts,
    taskQueue: createTaskQueue(),
    priority: createPriority(),
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
    getSession: () => undefined,
    index,
    catalogue,
    getTexts: async () => turns,
    taskQueue: createTaskQueue(),
    priority: createPriority(),
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

test('writing what was captured waits for a recall that runs', async () => {
  const index = createInMemorySearchIndex(createHashEmbedder());
  const order: string[] = [];
  const put = async (rows: readonly IndexRow[]): Promise<void> => {
    order.push('written');
    await index.put(rows);
  };
  const catalogue = createNodeRegistry();
  const [node] = nodes;
  if (node === undefined) throw new Error('there are nodes');
  catalogue.put([node]);
  const priority = createPriority(60_000);
  const indexer = createIndexer({
    getSession: () => undefined,
    index: { ...index, put },
    catalogue,
    getTexts: async () => [],
    taskQueue: createTaskQueue(),
    priority,
    log: silentLog,
  });
  const recall = priority.answer(async () => {
    indexer.upsert([node]);
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    order.push('recalled');
  });
  await recall;
  await indexer.settled();
  expect(order).toEqual(['recalled', 'written']);
});

const turn = (at: number): TurnText => ({ turnId: `t${at}`, atMs: at, origin: 'user', user: `said ${at}`, parts: [] });
const turns = (from: number, to: number): TurnText[] => Array.from({ length: to - from }, (_, at) => turn(from + at));

function counted(all: () => readonly TurnText[]) {
  let reads = 0;
  const session = createSessionTurns(async () => {
    reads += 1;
    return all();
  });
  return { session, reads: () => reads };
}

const getPosition = async (read: ReturnType<ReturnType<typeof createSessionTurns>['read']>, turnId: string) =>
  (await read).positions.get(turnId)?.position;

test('what follows the turns known so far needs no reading; each turn knows how many came before it', async () => {
  let written = 3;
  const { session, reads } = counted(() => turns(0, written));
  expect(await getPosition(session.read('s', turns(0, 3)), 't2')).toBe(2);
  written = 8;
  expect(await getPosition(session.read('s', turns(3, 8)), 't7')).toBe(7);
  expect(await getPosition(session.read('s', turns(1, 3)), 't1')).toBe(1);
  expect(reads()).toBe(1);
});

test('a session that was never seen, or forgotten, is read as a whole', async () => {
  const { session, reads } = counted(() => turns(0, 8));
  expect(await getPosition(session.read('s', turns(6, 8)), 't6')).toBe(6);
  session.clear();
  expect(await getPosition(session.read('s'), 't1')).toBe(1);
  expect(reads()).toBe(2);
});

test.each([
  ['staging port', '5433', 'staging port: 5433'],
  ['Staging ports', 'staging port is 5433', 'staging port is 5433'],
  ['port', 'staging port is 5433', 'port: staging port is 5433'],
])('the fact %s, %s is indexed as "%s": a concept that begins its value is not said twice', (concept, value, text) => {
  const node = makeNode({ written_by: 'claude', facts: [{ concept, value, polarity: 'positive', evidence: ['t'] }] });
  const [fact] = getRows(node, { turns: new Map(), positions: new Map() }).filter(({ kind }) => kind === 'fact');
  expect(fact?.text).toBe(text);
});
