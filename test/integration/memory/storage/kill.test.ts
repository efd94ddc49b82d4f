import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openLanceIndex } from '../../../../memory/search/lancedb/search-index.ts';
import { openNodeFiles } from '../../../../memory/storage/fs/node-files.ts';
import { openJournal } from '../../../../memory/storage/fs/turn-log.ts';
import { nodeRow } from '../../../contract/search-index.ts';
import { turn } from '../../../contract/turn-log.ts';
import { getProgram } from '../../../helpers/compiled.ts';
import { createHashEmbedder } from '../../../helpers/hash-embedder.ts';
import { makeNode } from '../../../helpers/nodes.ts';

/** Of each store; `test/faults/kill-points.test.ts` kills at hundreds of writes without processes. */
const KILLS = 2;
let out: string;
let home: string;

beforeAll(async () => {
  out = await mkdtemp(path.join(os.tmpdir(), 'comet-kill-'));
  home = path.join(out, 'home');
});

afterAll(() => rm(out, { recursive: true, force: true }));

/** Runs a writer, kills it in the middle of its work again and again, and gives the numbers it had acknowledged. */
async function killedWriter(store: string, template: unknown): Promise<number[]> {
  const program = getProgram('write-until-killed');
  const acknowledged: number[] = [];
  for (let round = 1; round <= KILLS; round += 1) {
    const first = (acknowledged.at(-1) ?? -1) + 1_000;
    const writer = execa('node', [program, store, home, String(first), JSON.stringify(template)], {
      reject: false,
      buffer: false,
    });
    let count = 0;
    for await (const line of writer.iterable()) {
      acknowledged.push(Number(line));
      count += 1;
      if (count === round * 3) writer.kill('SIGKILL');
    }
    const { exitCode, isTerminated } = await writer;
    expect({ exitCode, isTerminated }).toEqual({ exitCode: undefined, isTerminated: true });
  }
  return acknowledged;
}

test('no acknowledged turn is lost when the writer is killed', async () => {
  const acknowledged = await killedWriter('journal', turn('s-1', 'x', 'y'.repeat(20_000)));
  const journal = await openJournal({ dir: path.join(home, 'journal'), report: () => {} });
  const turnIds = new Set((await journal.read('s-1')).map(({ turnId }) => turnId));
  for (const at of acknowledged) expect(turnIds).toContain(`e${at}`);
  await journal.close();
});

test('no acknowledged node is lost when the writer is killed', async () => {
  const acknowledged = await killedWriter('nodes', makeNode());
  const files = await openNodeFiles({ nodesDir: path.join(home, 'nodes'), briefsDir: path.join(home, 'briefs') });
  const { nodes, problems } = await files.load();
  expect(problems).toEqual([]);
  const ids = new Set(nodes.map(({ node_id }) => node_id));
  for (const at of acknowledged) expect(ids).toContain(`mem_20260301_101500_${at.toString(16).padStart(6, '0')}`);
});

test('no acknowledged row is lost when the writer is killed, and the index opens', async () => {
  const acknowledged = await killedWriter('index', nodeRow('x', 'some words'));
  const opened = await openLanceIndex({
    dir: path.join(home, 'index'),
    embedder: createHashEmbedder(),
    now: Date.now,
    report: () => {},
  });
  expect(opened.rebuilt).toBe(false);
  const ids = new Set((await opened.index.entries()).keys());
  for (const at of acknowledged) expect(ids).toContain(`n${at}`);
  await opened.index.close();
});
