import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { expect, it } from 'vitest';
import { openLanceIndex } from '../../memory/search/lancedb/search-index.ts';
import { nodeRow } from '../contract/search-index.ts';
import { compileInto } from '../helpers/compiled.ts';
import { createHashEmbedder } from '../helpers/hash-embedder.ts';
import { searched } from '../helpers/lane-hits.ts';

const KILLS = 5;

it('an index killed during compaction keeps every acknowledged row', async () => {
  const out = await mkdtemp(path.join(os.tmpdir(), 'comet-index-kill-'));
  const dir = path.join(out, 'index');
  const program = path.join(out, 'js/test/fixtures/programs/write-until-killed.js');
  const acknowledged: number[] = [];
  try {
    await compileInto(path.join(out, 'js'), ['test/fixtures/programs/write-until-killed.ts']);
    for (let round = 0; round < KILLS; round += 1) {
      const template = JSON.stringify(nodeRow('x', 'some words'));
      const writer = execa('node', [program, 'index', out, String(round * 1_000), template], {
        reject: false,
        buffer: { stdout: false },
      });
      let count = 0;
      for await (const line of writer.iterable()) {
        acknowledged.push(Number(line));
        count += 1;
        // The 16th commit is followed by a tidying; the kill falls into that, each time a little later.
        if (count === 15) setTimeout(() => writer.kill('SIGKILL'), round * 12);
      }
      const { isTerminated, stderr } = await writer;
      expect({ isTerminated, stderr: String(stderr ?? '') }).toEqual({ isTerminated: true, stderr: '' });
    }
    const embedder = createHashEmbedder();
    const opened = await openLanceIndex({ dir, embedder, now: Date.now, report: () => {} });
    expect(opened.rebuilt).toBe(false);
    const ids = new Set((await opened.index.entries()).keys());
    expect(acknowledged.filter((at) => !ids.has(`n${at}`))).toEqual([]);
    expect((await searched(opened.index, 'some words', { limit: 1 })).fts).toHaveLength(1);
    await opened.index.close();
  } finally {
    await rm(out, { recursive: true, force: true });
  }
});
