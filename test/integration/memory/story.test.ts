import path from 'node:path';
import { expect, test } from 'vitest';
import { createStaticEmbedder } from '../../../memory/embeddings/static-embedder.ts';
import type { Memory } from '../../../memory/index.ts';
import { openLanceIndex } from '../../../memory/search/lancedb/search-index.ts';
import type { SearchIndex } from '../../../memory/search/search-index.ts';
import { ANSWERED, HELD_OUT, UNANSWERED } from '../../fixtures/story-questions.ts';
import { createInMemorySearchIndex } from '../../helpers/in-memory-search-index.ts';
import { createDisk, openRig } from '../../helpers/memory-rig.ts';
import { linesFor, missedBy, type Pace, replayStory, STORY_MS } from '../../helpers/story-memory.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();

async function lanceIndex() {
  const dir = path.join(await tempDir(), 'index');
  const { index } = await openLanceIndex({ dir, embedder: createStaticEmbedder(), now: Date.now, report: () => {} });
  return index;
}

const inMemory = async () => createInMemorySearchIndex(createStaticEmbedder());

async function loudOn(memory: Memory, questions: readonly string[]): Promise<string[]> {
  const loud: string[] = [];
  for (const question of questions) {
    const lines = await linesFor(memory, question);
    if (lines.length > 0) loud.push([question, ...lines].join('\n  '));
  }
  return loud;
}

test.each<[string, Pace, 'claude' | 'off', () => Promise<SearchIndex>]>([
  ['a turn at a time, in memory', 'lived', 'claude', inMemory],
  ['all at once, in memory', 'at once', 'claude', inMemory],
  ['with models off, in memory', 'at once', 'off', inMemory],
  ['a turn at a time, in LanceDB', 'lived', 'claude', lanceIndex],
])('a day of work answers the questions of the next: %s', async (_, pace, llm, open) => {
  const index = await open();
  const memory = await openRig({ ...createDisk(), index, nowMs: STORY_MS }, { llm });
  await replayStory(memory, pace);
  // Until the next day the index has come to rest: every commit is optimized.
  await index.optimize();

  const missed = await missedBy(memory, ANSWERED);
  expect(missed.length, missed.join('\n')).toBeLessThanOrEqual(2);
  const heldOut = await missedBy(memory, HELD_OUT);
  expect(heldOut.length, heldOut.join('\n')).toBeLessThanOrEqual(8);
  const loud = await loudOn(memory, UNANSWERED);
  expect(loud.length, loud.join('\n')).toBe(0);

  await memory.maintenance.close();
  await index.close();
});
