import { afterEach, describe, expect, it } from 'vitest';
import type { Memory } from '../../memory/index.ts';
import { createDisk, freshIndex, openRig } from '../helpers/memory-rig.ts';
import { talk } from '../helpers/turns.ts';

const YEAR_MS = 365 * 86_400_000;
const open: Memory[] = [];
afterEach(async () => {
  for (const memory of open.splice(0)) await memory.maintenance.close();
});

const FACTS = [
  ['The staging database listens on port 5433.', 'Noted, src/db.ts uses port 5433.'],
  ['We decided to use pnpm, never npm.', 'Understood: pnpm only.'],
  ['Payment retries must be capped at 4.', 'payment-client.ts caps retries at 4.'],
] as const;
const calm = new AbortController().signal;

describe('memory', () => {
  it('keeps order and loses nothing when the clock jumps a year', async () => {
    const disk = createDisk();
    const startMs = disk.nowMs;
    const ask = async (memory: Memory): Promise<string> => {
      const shown = { visibleTurns: new Set<string>(), shown: new Set<string>() };
      const about = { sessionId: 'other', projectDir: '/home/dev/shop', recent: [] };
      const prompt = 'Which port does the staging database listen on?';
      const hits = await memory.recall.recall({ ...about, ...shown, prompt }, calm);
      return hits.map(({ line }) => line.text).join('\n');
    };
    let memory = await openRig(disk, { llm: 'local' });
    open.push(memory);
    for (const [at, shiftMs] of [0, YEAR_MS, -YEAR_MS].entries()) {
      disk.nowMs = startMs + shiftMs;
      const [prompt, answer] = FACTS[at] as (typeof FACTS)[number];
      memory.capture.captureTurns([talk(prompt, answer, { atMs: disk.nowMs })]);
      expect(await memory.maintenance.flush(10_000)).toBe(true);
      await memory.maintenance.dream({ dryRun: false });
      expect(await ask(memory)).toContain('5433');
      expect(JSON.stringify(disk.briefs.get('s1'))).toContain(answer.slice(0, -1));
      expect(memory.library.list({ all: true })).toHaveLength(at + 1);
      expect((await disk.journal.read('s1')).map(({ seq }) => seq)).toEqual(
        FACTS.slice(0, at + 1).map((_, seq) => seq),
      );
      expect(
        (await memory.library.restoreSession('s1')).filter((_, index) => index % 2 === 0).map(({ content }) => content),
      ).toEqual(FACTS.slice(0, at + 1).map(([said]) => said));
      // And a start in that year.
      await memory.maintenance.close();
      disk.index = freshIndex();
      memory = await openRig(disk, { llm: 'local' });
      open.push(memory);
      expect(await memory.maintenance.flush(10_000)).toBe(true);
      expect(await ask(memory)).toContain('5433');
      expect(memory.library.list({ all: true })).toHaveLength(at + 1);
    }
  });

  it('keeps and cuts turns while the index stalls', async () => {
    const disk = createDisk();
    let release = (): void => {};
    const stalled = new Promise<void>((resolve) => {
      release = resolve;
    });
    disk.index = { ...disk.index, put: () => stalled };
    const memory = await openRig(disk, { llm: 'local' });
    open.push(memory);
    const turns = FACTS.map(([prompt, answer], at) => talk(prompt, answer, { atMs: disk.nowMs + at }));
    const turnIds = turns.map(({ turnId }) => turnId);
    memory.capture.captureTurns(turns);
    memory.capture.prepareNodes('s1', turnIds);
    await expect.poll(() => memory.recall.nodesCovering(turnIds).size).toBe(3);
    expect(await disk.journal.read('s1')).toHaveLength(3);
    expect((await memory.recall.sessionContext('s1', '/home/dev/shop')).brief.join('\n')).not.toBe('');
    release();
  });
});
