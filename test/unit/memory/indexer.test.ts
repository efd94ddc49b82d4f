import { expect, test } from 'vitest';
import { silentLog } from '../../../common/log.ts';
import { createHashEmbedder } from '../../../memory/adapters/hash-encoder.ts';
import { createMemoryIndex } from '../../../memory/adapters/memory-index.ts';
import { createCatalogue } from '../../../memory/catalogue.ts';
import { createIndexer } from '../../../memory/indexer.ts';
import type { IndexRow } from '../../../memory/ports.ts';
import { createTracker } from '../../../memory/tracker.ts';
import { makeNode } from '../../helpers/nodes.ts';

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
  const index = createMemoryIndex(createHashEmbedder());
  const counted = {
    ...index,
    upsert: (rows: readonly IndexRow[]) => {
      writes.push(rows);
      return index.upsert(rows);
    },
  };
  const catalogue = createCatalogue();
  catalogue.put(nodes);
  const textsOf = async (sessionId: string) => {
    const end = sessionId.replace('session', 'end');
    return [{ end, atMs: 1, origin: 'user' as const, user: `said in ${sessionId}`, parts: [] }];
  };
  const indexer = createIndexer({
    sessionOf: () => undefined,
    index: counted,
    catalogue,
    textsOf,
    tracker: createTracker(),
    log: silentLog,
  });
  if (way === 'reconcile') await indexer.reconcile(() => false);
  else await indexer.rebuild(() => {});
  expect(writes.map((rows) => rows.filter(({ kind }) => kind === 'node').length)).toEqual([100, 100, 50]);
  const entries = await index.entries();
  expect(nodes.map(({ node_id }) => entries.get(node_id)?.turns)).toEqual(nodes.map(({ turns }) => turns));
});
