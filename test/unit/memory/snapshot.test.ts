import { expect, it } from 'vitest';
import { noFacts } from '../../../bench/no-files.ts';
import { createHistory } from '../../../memory/snapshot.ts';
import { createSnapshotService } from '../../../memory/storage/snapshot.ts';
import { createMemorySnapshots } from '../../helpers/memory-snapshots.ts';
import { makeNode } from '../../helpers/nodes.ts';

const ID = 'mem_20261125_010000_abc001';

function rig() {
  let node = makeNode({ node_id: ID, summary: 'the port is 7411' });
  const texts = new Map([['topics/ports.md', '# Ports\n\n- 7411\n']]);
  const files = { briefs: async () => [] };
  const catalogue = { every: () => [makeNode({ node_id: 'mem_20261125_010000_abc002', links: [ID] }), node] };
  const pageFiles = { load: async () => ({ texts }) };
  const snapshooter = createSnapshotService({
    ...{ nodeFiles: files, snapshots: createMemorySnapshots(), catalogue, pageFiles, factFiles: noFacts },
  } as never);
  const redactor = { text: (text: string) => text.replaceAll('secret', '[REDACTED]') };
  const topicPages = { shelf: async () => ({ texts }) };
  return {
    history: createHistory({ snapshooter, topicPages, redactor, resolve: () => node } as never),
    async change(summary: string, page: string | null) {
      await snapshooter.take('edit');
      node = makeNode({ node_id: ID, summary });
      if (page === null) texts.delete('topics/ports.md');
      else texts.set('topics/ports.md', page);
    },
  };
}

it('gives the earlier texts of a memory, each once, newest first', async () => {
  const { history, change } = rig();
  await change('the port is 7412', '# Ports\n\n- 7412\n');
  await change('the port is 7412', '# Ports\n\n- 7412\n');
  await change('the port is 7413', '# Ports\n\n- 7413\n');
  const { now, versions } = await history.memoryHistory(ID);
  expect(now).toContain('the port is 7413');
  expect(versions.map(({ text, reason }) => [/port is \d+/.exec(text)?.[0], reason])).toEqual([
    ['port is 7412', 'edit'],
    ['port is 7411', 'edit'],
  ]);
});

it('gives the earlier texts of a page, redacted, also of one that is gone', async () => {
  const { history, change } = rig();
  await change('a', '# Ports\n\n- secret\n');
  await change('b', null);
  const { now, versions } = await history.topicHistory('ports');
  expect([now, ...versions.map(({ text }) => text)]).toEqual(['', '# Ports\n\n- [REDACTED]\n', '# Ports\n\n- 7411\n']);
  await expect(history.topicHistory('none')).rejects.toThrow('no topic none here');
});
