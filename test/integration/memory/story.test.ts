import path from 'node:path';
import { expect, test } from 'vitest';
import { createHashEmbedder } from '../../../memory/adapters/hash-encoder.ts';
import { openLanceIndex } from '../../../memory/adapters/lance-index.ts';
import type { Memory } from '../../../memory/index.ts';
import { ANSWERED, HELD_OUT, UNANSWERED } from '../../fixtures/story-questions.ts';
import { createDisk, freshIndex, openRig } from '../../helpers/memory-rig.ts';
import { linesFor, missedBy, type Pace, replayStory } from '../../helpers/story-memory.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();

async function lanceIndex() {
  const dir = path.join(await tempDir(), 'index');
  const { index } = await openLanceIndex({ dir, embedder: createHashEmbedder(), now: Date.now, report: () => {} });
  return index;
}

async function loudOn(memory: Memory, questions: readonly string[]): Promise<string[]> {
  const loud: string[] = [];
  for (const question of questions) {
    const lines = await linesFor(memory, question);
    if (lines.length > 0) loud.push([question, ...lines].join('\n  '));
  }
  return loud;
}

test.each<[string, Pace, 'claude' | 'off', () => ReturnType<typeof lanceIndex>]>([
  ['a turn at a time, in memory', 'lived', 'claude', async () => freshIndex()],
  ['all at once, in memory', 'at once', 'claude', async () => freshIndex()],
  ['with models off, in memory', 'at once', 'off', async () => freshIndex()],
  ['a turn at a time, in LanceDB', 'lived', 'claude', lanceIndex],
])('a day of work answers the questions of the next: %s', { timeout: 60_000 }, async (_, pace, llm, open) => {
  const index = await open();
  const memory = await openRig({ ...createDisk(), index }, { llm });
  await replayStory(memory, pace);

  const missed = await missedBy(memory, ANSWERED);
  expect(missed.length, missed.join('\n')).toBeLessThanOrEqual(2);
  const heldOut = await missedBy(memory, HELD_OUT);
  expect(heldOut.length, heldOut.join('\n')).toBeLessThanOrEqual(5);
  const loud = await loudOn(memory, UNANSWERED);
  expect(loud.length, loud.join('\n')).toBeLessThanOrEqual(1);

  await memory.close();
  await index.close();
});
