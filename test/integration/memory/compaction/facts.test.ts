import { expect, test } from 'vitest';
import { Config } from '../../../../common/config.ts';
import type { CapturedMessage } from '../../../../common/turn.ts';
import { BRIEF_CHARS } from '../../../../memory/compaction/brief.ts';
import { openOnDisk } from '../../../helpers/disk-rig.ts';
import { createDisk, openRig } from '../../../helpers/memory-rig.ts';
import { makeNode } from '../../../helpers/nodes.ts';
import { oneNode, scriptedModel } from '../../../helpers/scripted-model.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { failedRound, getTurn, message, talk, toolRound } from '../../../helpers/turns.ts';

const tempDir = tempDirs();
const AT = 1_800_000_000_000;
const said = (text: string, minute: number) => talk(text, 'Noted.', { atMs: AT + minute * 60_000 });
const LINE = said('The courier depot in Trieste opens at six, put that somewhere.', 0);
const TURNS = [LINE, said('Rename the helper please.', 1), said('And run the tests.', 2)];

test('facts of the compacter lead to their turns by a lane of their own, and why names both', async () => {
  const model = scriptedModel({
    sense: () => ({ logic_flow: 'MAINTAIN', load_level: 1, redundancy_detected: false }),
    compact: (input) => {
      const result = oneNode(input, 'work on the helper, and where parcels are handed in');
      const fact = { concept: 'Trieste depot hours', value: 'opens at six', polarity: 'positive' as const };
      const facts = [{ ...fact, evidence: [LINE.turnId] }];
      return { ...result, nodes: result.nodes.map((node) => ({ ...node, facts })) };
    },
  });
  const { memory } = await openOnDisk(await tempDir(), { model, watch: null });
  memory.capture.captureTurns(TURNS);
  expect(await memory.maintenance.flush(60_000)).toBe(true);
  const [hit] = await memory.recall.search('depot hours', { top: 3 });
  expect(hit?.lanes.fact).toMatchObject({ rank: 1 });
  expect(hit?.raw?.turn).toBe(LINE.turnId);
  const why = await memory.library.explain(hit?.node.node_id as string);
  expect(why.written_by).toBe('scripted');
  expect(why.facts).toEqual([
    {
      concept: 'Trieste depot hours',
      value: 'opens at six',
      polarity: 'positive',
      origin: expect.any(String),
      turns: [LINE.turnId],
    },
  ]);
  expect(why.turns.map(({ turn }) => turn)).toContain(LINE.turnId);
  await memory.maintenance.close();
});

test('the brief is rewritten at each compaction, within its size, each claim with its turns', async () => {
  const disk = createDisk();
  const memory = await openRig(disk, { llm: 'local' });
  for (let round = 0; round < 12; round += 1) {
    const words = `${'so that the carriers agree on one form '.repeat(4)}`.trim();
    memory.capture.captureTurns([said(`Move src/carrier-${round}.ts to the port 54${10 + round}, ${words}.`, round)]);
    expect(await memory.maintenance.flush(60_000)).toBe(true);
  }
  const brief = disk.briefs.get('s1');
  const text = await memory.library.readBrief('s1');
  expect(text.length).toBeLessThanOrEqual(BRIEF_CHARS);
  expect(text.match(/^## /gm)).toEqual(['## ']);
  // The task that the session began with, and the newest one.
  expect(text).toMatch(/Goal: Move src\/carrier-0\.ts .*; last asked: Move src\/carrier-11\.ts /);
  expect(text).not.toContain('src/carrier-10.ts');
  for (const claim of brief?.active ?? []) expect(claim.sources).not.toEqual([]);
  await memory.maintenance.close();
});

test('the brief lists what edits came to, whatever is asked after them', async () => {
  const disk = createDisk();
  const memory = await openRig(disk, { llm: 'local' });
  const turn = (at: number, prompt: string, messages: CapturedMessage[]) => ({
    ...getTurn(prompt, messages),
    atMs: AT + at * 60_000,
  });
  const answer = (text: string) => message('assistant', [{ type: 'text', text }]);
  const edited = [...toolRound('Edit', { file_path: '/shop/queue.ts' }, 'ok'), answer('Added a retry in `queue.ts`.')];
  const refused = [
    ...failedRound('Edit', { file_path: '/shop/a.ts' }, 'Error: not found'),
    answer('Nothing was changed in `a.ts`.'),
  ];
  memory.capture.captureTurns([
    turn(0, 'Add a retry to the queue.', edited),
    turn(1, 'Also touch a.ts in the shop.', refused),
    turn(2, 'Why does the queue wait for so long?', [answer('It waits for the lock.')]),
  ]);
  expect(await memory.maintenance.flush(60_000)).toBe(true);
  expect((await memory.library.readBrief('s1')).match(/^- (?:Done|Stands): .*$/gm)).toEqual([
    '- Done: Added a retry in `queue.ts`',
    '- Stands: It waits for the lock',
  ]);
  await memory.maintenance.close();
});

test('what is always shown is capped in number and in size, the weightiest first', async () => {
  const disk = createDisk();
  const passive = Array.from({ length: 60 }, (_, at) =>
    makeNode({
      node_id: `mem_20260301_101500_${at.toString(16).padStart(6, '0')}`,
      session_id: 'before',
      recall_mode: 'passive',
      importance: at === 59 ? 'HIGH' : 'LOW',
      summary: `rule number ${at}: ${(at % 2 === 0 ? 'keep to it always ' : '늘 이것을 지킨다 ').repeat(4)}`,
      turns: [],
      written_by: 'claude',
    }),
  );
  await disk.nodeFiles.save(passive);
  const config = Config.parse({ llm: 'local', recall: { passiveLines: 5 } });
  const few = await openRig(disk, { config });
  const lines = async (memory: typeof few) => (await memory.recall.sessionContext('new', '/home/dev/shop')).lines;
  expect(await lines(few)).toHaveLength(5);
  expect((await lines(few))[0]?.text).toContain('rule number 59');
  await few.maintenance.close();
  const all = await openRig(disk, { llm: 'local' });
  const { passiveLines, passiveTokens } = Config.parse({}).recall;
  const shown = await lines(all);
  expect(shown.length).toBeLessThanOrEqual(passiveLines);
  expect(shown.length).toBeGreaterThan(5);
  expect(shown.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)).toBeLessThanOrEqual(passiveTokens * 3.5);
  await all.maintenance.close();
});
