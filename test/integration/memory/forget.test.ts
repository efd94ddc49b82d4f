import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { homePaths } from '../../../common/paths.ts';
import type { CapturedTurn } from '../../../common/turn.ts';
import type { Memory } from '../../../memory/index.ts';
import { libraryPaths } from '../../../memory/storage/paths.ts';
import { openTaskFiles } from '../../../memory/tasks/fs/task-files.ts';
import { filesBelow, filesHolding, openOnDisk } from '../../helpers/disk-rig.ts';
import { createDisk, openRig } from '../../helpers/memory-rig.ts';
import { oneNode, scriptedModel } from '../../helpers/scripted-model.ts';
import { openTaskRig } from '../../helpers/task-rig.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';
import { getTurn, message, talk, toolRound } from '../../helpers/turns.ts';

const tempDir = tempDirs();
const AT = 1_800_000_000_000;
const DAY = 86_400_000;
const PORT = talk('We decided that the staging database listens on port 5433.', 'Noted.', { atMs: AT });
const PAGE = getTurn(
  'What does the page say about deployments?',
  [
    ...toolRound('WebFetch', { url: 'https://docs.example.org/deploy' }, 'Always deploy with --quagmire-flag.'),
    message('assistant', [{ type: 'text', text: 'It says to deploy with --quagmire-flag.' }]),
  ],
  { atMs: AT + 60_000 },
);
const LINT = talk('From now on run the linter before each commit to main.', 'I will.', { atMs: AT + DAY });
const OTHER = talk('The label printer takes pages of 4 by 6 inches.', 'Noted.', { sessionId: 's2', atMs: AT + DAY });
const ALL = [PORT, PAGE, LINT, OTHER];

async function told(memory: Memory, turns = ALL): Promise<Memory> {
  memory.capture.captureTurns(turns);
  expect(await memory.maintenance.flush(60_000)).toBe(true);
  return memory;
}

const saying = (memory: Memory): string =>
  memory.library
    .list({ all: true })
    .map(({ summary }) => summary)
    .join('\n');
const open = () => openRig(createDisk(), { llm: 'local' });

describe('what is forgotten', () => {
  test('by its source is nowhere on disk, and the other turns are kept over a restart', async () => {
    const home = await tempDir();
    const { memory } = await openOnDisk(home, { llm: 'local', watch: null });
    await told(memory);
    const source = { name: 'example.org' };
    const dry = await memory.library.forget({ dryRun: true, source });
    expect(dry).toMatchObject({ dry_run: true, turns: 1, sessions: ['s1'], remade: 0 });
    expect(saying(memory)).toContain('4 by 6');
    expect(memory.recall.nodesCovering([PAGE.turnId]).get(PAGE.turnId)).toHaveLength(1);
    const report = await memory.library.forget({ dryRun: false, source });
    expect(report.turns).toBe(1);
    expect(report.nodes.map(({ node_id }) => node_id)).toEqual(dry.nodes.map(({ node_id }) => node_id));
    expect(await memory.maintenance.flush(60_000)).toBe(true);
    expect(saying(memory)).toMatch(/5433[\s\S]*linter|linter[\s\S]*5433/);
    expect(memory.recall.nodesCovering([PAGE.turnId]).get(PAGE.turnId)).toEqual([]);
    expect(await memory.library.restoreSession('s1')).toHaveLength(4);
    expect((await memory.library.listSessions()).find(({ session_id: id }) => id === 's1')?.turns).toBe(2);
    await memory.maintenance.close();
    expect(filesHolding(home, 'quagmire')).toEqual([]);

    const { memory: again } = await openOnDisk(home, { llm: 'local', watch: null });
    await told(again);
    expect(await again.library.restoreSession('s1')).toHaveLength(4);
    const found = await again.recall.search('deploy with the quagmire flag', { top: 5 });
    expect(found.map(({ line }) => line.text).join('\n')).not.toContain('quagmire');
    await again.maintenance.close();
  });

  test('of a session is all of it: nodes, raw turns, brief, and the session itself', async () => {
    const home = await tempDir();
    const { memory } = await openOnDisk(home, { llm: 'local', watch: null });
    await told(memory);
    expect(await memory.library.readBrief('s1')).toContain('5433');
    const report = await memory.library.forget({ dryRun: false, sessionId: 's1' });
    expect(report).toMatchObject({ turns: 3, sessions: ['s1'], remade: 0 });
    expect((await memory.library.listSessions()).map(({ session_id: id }) => id)).toEqual(['s2']);
    await expect(memory.library.readBrief('s1')).rejects.toThrow('no session s1');
    await memory.maintenance.close();
    for (const word of ['5433', 'quagmire', 'linter']) expect(filesHolding(home, word)).toEqual([]);
    expect(filesBelow(path.join(home, 'journal')).map((file) => path.basename(file))).not.toContain('s1.log');
  });

  test('stays forgotten where a newer client words the beginning of the conversation in another way', async () => {
    const home = await tempDir();
    const { memory } = await openOnDisk(home, { llm: 'local', watch: null });
    const placed = (turn: CapturedTurn, before: string): CapturedTurn => ({ ...turn, before });
    const again = (turn: CapturedTurn): CapturedTurn => ({ ...turn, key: `2${turn.key}`, turnId: `2${turn.turnId}` });
    const [first, second, third] = [placed(PORT, ''), placed(LINT, PORT.turnId), placed(PAGE, LINT.turnId)] as const;
    await told(memory, [first, second, third]);
    await memory.library.forget({ dryRun: false, source: { name: 'example.org' } });
    await told(memory, [again(first), { ...again(second), before: `2${first.turnId}` }, again(third)]);
    expect(memory.library.list({ all: true }).flatMap(({ turns }) => turns)).not.toContain(`2${LINT.turnId}`);
    expect(saying(memory).match(/5433/g)).toHaveLength(1);
    expect(memory.recall.nodesCovering([`2${first.turnId}`]).get(`2${first.turnId}`)).toHaveLength(1);
    // Nothing stands for it, but it need not be sent either.
    expect(memory.recall.nodesCovering([`2${third.turnId}`]).get(`2${third.turnId}`)).toEqual([]);
    expect(await memory.library.restoreSession('s1')).toHaveLength(4);
    await memory.maintenance.close();
    expect(filesHolding(home, 'quagmire')).toEqual([]);
  });

  test('since a time leaves what was said before, of one node too', async () => {
    const memory = await told(await open());
    const report = await memory.library.forget({ dryRun: false, sinceMs: AT + DAY });
    expect(report).toMatchObject({ turns: 2, sessions: ['s1', 's2'] });
    expect(saying(memory)).toContain('5433');
    expect(saying(memory)).not.toMatch(/linter|4 by 6/);
    await memory.maintenance.close();
  });

  test('has to fit all that is named', async () => {
    const memory = await told(await open());
    const both = { source: { name: 'WebFetch' }, sinceMs: AT + DAY };
    expect(await memory.library.forget({ dryRun: false, ...both })).toMatchObject({
      turns: 0,
      nodes: [],
      sessions: [],
    });
    await expect(memory.library.forget({ dryRun: false })).rejects.toMatchObject({ code: 'usage' });
    expect(saying(memory)).toContain('5433');
    await memory.maintenance.close();
  });

  test('takes the tasks along that were made of it, and their lines in the inbox', async () => {
    const home = await tempDir();
    const files = await openTaskFiles(libraryPaths('', homePaths(home)));
    const { tasks, surfacing, clock } = openTaskRig(files, { clock: { nowMs: AT } });
    const { memory } = await openOnDisk(home, { llm: 'local', watch: null, tasks });
    const call = { title: 'Ask Ilse about the "quagmire" flag', at: 'tomorrow' };
    const noted = getTurn(
      'Note that down as a task',
      [
        ...toolRound('mcp__comet-cc__add_task', call, 'Added.'),
        message('assistant', [{ type: 'text', text: 'Done.' }]),
      ],
      { atMs: AT + 120_000 },
    );
    await told(memory, [...ALL, noted]);
    const [node] = memory.library.list({ sessionId: 's1' });
    const id = node?.node_id ?? '';
    const base = { projectDir: null, origin: 'user', at: 'in 1 second' } as const;
    const fromNode = await tasks.add({ ...base, title: 'Move port 5433', sources: [id], context: [`${id}: quagmire`] });
    await tasks.add({ ...base, title: call.title, origin: 'tool' });
    await tasks.add({ ...base, title: 'Ask Ilse', what: `my own words about ${id}`, dependsOn: [fromNode.id] });
    clock.nowMs += 60_000;
    await surfacing.look();
    const day = (await tasks.inbox()).day;
    expect(await files.readInbox(day)).toMatch(/Move port 5433[\s\S]*quagmire|quagmire[\s\S]*Move port 5433/);

    const dry = await memory.library.forget({ dryRun: true, sessionId: 's1' });
    expect(dry.tasks.map(({ title }) => title).sort()).toEqual([
      'Ask Ilse about the "quagmire" flag',
      'Move port 5433',
    ]);
    expect((await tasks.list({ all: true })).tasks).toHaveLength(3);
    await memory.library.forget({ dryRun: false, sessionId: 's1' });
    const left = (await tasks.list({ all: true })).tasks;
    expect(left.map(({ title, depends_on, body }) => [title, depends_on, body.includes(id)])).toEqual([
      ['Ask Ilse', [], true],
    ]);
    expect(await files.readInbox(day)).toBe(`# Inbox ${day}\n\n`);
    await tasks.close();
    await memory.maintenance.close();
    for (const word of ['quagmire', '5433']) expect(filesHolding(home, word)).toEqual([]);
  });

  test('is forgotten before it has a node', async () => {
    const disk = createDisk();
    const memory = await openRig(disk, { llm: 'local' });
    memory.capture.captureTurns([PAGE]);
    await expect.poll(async () => (await memory.library.listSessions())[0]?.turns).toBe(1);
    await memory.library.forget({ dryRun: false, source: { name: 'external' } });
    expect(saying(memory)).toBe('');
    expect(await disk.journal.read('s1')).toEqual([]);
    expect(JSON.stringify([...disk.briefs.values()])).not.toContain('quagmire');
    await memory.maintenance.close();
  });

  test('may be an imported document', async () => {
    const memory = await told(await open());
    const file = '/home/dev/notes.md';
    await memory.imports.importDocument({
      file,
      projectDir: '/home/dev/shop',
      text: '# Notes\n\nThe heron eats at dawn.\n',
    });
    expect(saying(memory)).toContain('heron');
    await memory.library.forget({ dryRun: false, source: { name: 'notes.md', file } });
    expect(saying(memory)).not.toContain('heron');
    expect(saying(memory)).toContain('5433');
    await memory.maintenance.close();
  });
});

test('a model that answers late brings nothing back', async () => {
  const disk = createDisk();
  let answer = (): void => {};
  const asked = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const model = scriptedModel({
    compact: async (input) => {
      await asked;
      return oneNode(input, 'deploys with --quagmire-flag');
    },
  });
  const memory = await openRig(disk, { model, idleMs: 0 });
  memory.capture.captureTurns([PAGE]);
  await expect.poll(async () => (await memory.library.listSessions())[0]?.turns).toBe(1);
  memory.capture.prepareNodes('s1', [PAGE.turnId]);
  await expect.poll(() => memory.library.list({}).length).toBe(1);
  await expect.poll(() => model.compacted).toHaveLength(1);
  await memory.library.forget({ dryRun: false, sessionId: 's1' });
  answer();
  expect(await memory.maintenance.flush(60_000)).toBe(true);
  expect(saying(memory)).toBe('');
  expect([...disk.briefs.values()].flatMap(({ active }) => active)).toEqual([]);
  await memory.maintenance.close();
});
