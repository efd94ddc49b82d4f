import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { expect, it } from 'vitest';
import { openLanceIndex } from '../../memory/search/lancedb/search-index.ts';
import { nodeRow } from '../contract/search-index.ts';
import { getProgram } from '../helpers/compiled.ts';
import { createHashEmbedder } from '../helpers/hash-embedder.ts';
import { searched } from '../helpers/lane-hits.ts';

const KILLS = 5;
/** A kill that comes after the end of an optimization is tried again. */
const MOST_ROUNDS = 15;
const LATER_MS = 2;

it('an index killed during compaction keeps every acknowledged row', async () => {
  const out = await mkdtemp(path.join(os.tmpdir(), 'comet-index-kill-'));
  const dir = path.join(out, 'index');
  const program = getProgram('write-until-killed');
  const template = JSON.stringify(nodeRow('x', 'some words'));
  const acknowledged: string[] = [];
  let kills = 0;
  try {
    for (let round = 0; round < MOST_ROUNDS && kills < KILLS; round += 1) {
      const writer = execa('node', [program, 'index', out, String(round * 1_000), template], {
        reject: false,
        buffer: { stdout: false },
      });
      let last = '';
      let rows = 0;
      for await (const line of writer.iterable()) {
        last = line;
        if (line === 'optimized') continue;
        // It also optimizes at its start what the one before it left.
        if (line !== 'optimizing') rows = acknowledged.push(`n${line}`);
        else if (rows > 0) setTimeout(() => writer.kill('SIGKILL'), kills * LATER_MS);
      }
      const { isTerminated, stderr } = await writer;
      expect({ isTerminated, stderr: String(stderr ?? '') }).toEqual({ isTerminated: true, stderr: '' });
      if (last === 'optimizing') kills += 1;
    }
    expect(kills).toBe(KILLS);
    const embedder = createHashEmbedder();
    const opened = await openLanceIndex({ dir, embedder, now: Date.now, report: () => {} });
    expect(opened.rebuilt).toBe(false);
    const ids = new Set((await opened.index.entries()).keys());
    expect(acknowledged.length).toBeGreaterThan(KILLS * 10);
    expect(acknowledged.filter((id) => !ids.has(id))).toEqual([]);
    expect((await searched(opened.index, 'some words', { limit: 1 })).fts).toHaveLength(1);
    await opened.index.close();
  } finally {
    await rm(out, { recursive: true, force: true });
  }
});
