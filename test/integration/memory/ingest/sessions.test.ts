import { appendFile, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import type { Memory } from '../../../../memory/index.ts';
import { createClosedSessionsFile } from '../../../../memory/storage/fs/set-files.ts';
import { createDisk, type Disk, openRig, type RigOptions } from '../../../helpers/memory-rig.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { getTurn, message, talk, toolRound } from '../../../helpers/turns.ts';

const open: Memory[] = [];
async function start(disk: Disk, options: RigOptions = {}): Promise<Memory> {
  const memory = await openRig(disk, { llm: 'local', ...options });
  open.push(memory);
  return memory;
}
afterEach(async () => {
  for (const memory of open.splice(0)) await memory.maintenance.close();
});

const tempDir = tempDirs();
const AT = 1_800_000_000_000;
const first = talk('The staging database listens on port 5433.', 'Noted: port 5433.', { sessionId: 'abc-1', atMs: AT });
const second = talk('We use pnpm, never npm.', 'pnpm only.', { sessionId: 'abc-1', atMs: AT + 60_000 });
const other = talk('The retries are capped at 4.', 'At 4.', { sessionId: 'abd-2', atMs: AT, projectDir: '/p/other' });
const getState = async (memory: Memory, id: string) =>
  (await memory.library.listSessions()).find((session) => session.session_id === id);

describe('a session that is closed', () => {
  test('has memory of all its turns, and stays closed over a restart', async () => {
    const disk = createDisk();
    disk.nowMs = AT + 1_000;
    const memory = await start(disk);
    memory.capture.captureTurns([first]);
    await expect.poll(() => getState(memory, 'abc-1')).toMatchObject({ status: 'active', closed_at: null });
    expect(await memory.capture.closeSession('abc-1')).toMatchObject({ status: 'closed', turns: 1 });
    expect(memory.recall.nodesCovering([first.turnId]).size).toBe(1);
    const again = await start(disk);
    expect(await again.library.showSession('abc-1')).toMatchObject({
      status: 'closed',
      closed_at: new Date(AT + 1_000).toISOString(),
      nodes: [{ text: expect.stringContaining('5433') }],
    });
  });

  test('is active again with its next turn', async () => {
    const disk = createDisk();
    disk.nowMs = AT + 1_000;
    const memory = await start(disk);
    memory.capture.captureTurns([first]);
    await expect.poll(() => getState(memory, 'abc-1')).toBeDefined();
    await memory.capture.closeSession('abc-1');
    disk.nowMs = AT + 61_000;
    memory.capture.captureTurns([second]);
    await expect.poll(async () => (await getState(memory, 'abc-1'))?.turns).toBe(2);
    expect(await getState(memory, 'abc-1')).toMatchObject({ status: 'active', closed_at: null });
  });

  test('is not called closed while its turns could not be kept', async () => {
    const disk = createDisk();
    const save = () => Promise.reject(new Error('no space left'));
    const memory = await start(disk, { nodeFiles: { ...disk.nodeFiles, save } });
    memory.capture.captureTurns([first]);
    await expect.poll(() => getState(memory, 'abc-1')).toBeDefined();
    await expect(memory.capture.closeSession('abc-1')).rejects.toMatchObject({ code: 'journal_failed' });
    expect(disk.closed.size).toBe(0);
    await expect(memory.capture.closeSession('nobody')).rejects.toMatchObject({ code: 'not_found' });
  });
});

test('requests are named by their prompt, without the commands of the client in front of it', async () => {
  const memory = await start(createDisk());
  const turn = talk('/export talk.txt\n\nWhich port is it?', 'It is 5433.', { sessionId: 'abc-1', atMs: AT });
  memory.capture.captureTurns([first, turn]);
  await memory.capture.awaitCaptures('abc-1');
  expect((await memory.library.prompts('abc-1')).at(-1)).toMatchObject({ key: turn.key, text: 'Which port is it?' });
});

test('a session is named by any unambiguous start of its id', async () => {
  const memory = await start(createDisk());
  memory.capture.captureTurns([first, other]);
  await memory.maintenance.flush(60_000);
  expect(memory.library.list({ sessionId: 'abc' }).map((node) => node.session_id)).toEqual(['abc-1']);
  expect((await memory.recall.search('retries', { top: 5, sessionId: 'abd' })).length).toBe(1);
  expect(memory.library.list({ sessionId: 'nobody' })).toEqual([]);
  expect(() => memory.library.list({ sessionId: 'ab' })).toThrow(/2 sessions begin with "ab"/);
});

test('about tells of one project what is known, HIGH first', async () => {
  const disk = createDisk();
  const memory = await start(disk);
  memory.capture.captureTurns([first, second, other]);
  await memory.maintenance.flush(60_000);
  const [newest, oldest] = memory.library.list({ sessionId: 'abc-1' });
  const known = await memory.library.projectOverview('/home/dev/shop');
  expect(known).toMatchObject({ project: '/home/dev/shop', counts: { sessions: 1, turns: 2 } });
  expect(JSON.stringify(known)).toContain('5433');
  expect(JSON.stringify(known)).not.toContain('retries');
  const last = oldest ?? newest;
  await memory.library.edit(last?.node_id as string, { set: { importance: 'HIGH' } });
  expect((await memory.library.projectOverview('/home/dev/shop')).nodes[0]).toMatchObject({
    node_id: last?.node_id,
    importance: 'HIGH',
  });
  expect((await memory.library.projectOverview('/nowhere')).counts).toEqual({
    sessions: 0,
    turns: 0,
    nodes: 0,
    facts: 0,
  });
});

test('the file of closes keeps the latest, survives a torn line, and is private', async () => {
  const file = path.join(await tempDir(), 'journal', 'closed');
  const closings = createClosedSessionsFile(file);
  expect((await closings.load()).size).toBe(0);
  await closings.add('s"1', AT);
  await closings.add('s"1', AT + 5);
  await appendFile(file, '{"session_id":"torn');
  await closings.add('s2', AT);
  expect([...(await createClosedSessionsFile(file).load())]).toEqual([
    ['s"1', AT + 5],
    ['s2', AT],
  ]);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readFile(file, 'utf8')).toContain('torn');
});

test('restore brings back both branches that differ only in what a tool was given', async () => {
  const branch = (file: string) =>
    getTurn(
      'Fix it.',
      [...toolRound('Edit', { file }, 'done'), message('assistant', [{ type: 'text', text: 'Fixed.' }])],
      { sessionId: 'abc-1', atMs: AT },
    );
  const disk = createDisk();
  for (const turns of [[branch('src/first.ts'), branch('src/second.ts')], []]) {
    const memory = await start(disk);
    memory.capture.captureTurns(turns);
    await memory.maintenance.flush(60_000);
    const { library } = memory;
    const restored = JSON.stringify(await library.restoreSession('abc-1'));
    expect(restored).toContain('src/first.ts');
    expect(restored).toContain('src/second.ts');
    expect(memory.recall.nodesCovering([branch('src/first.ts').turnId, branch('src/second.ts').turnId]).size).toBe(2);
  }
});

test('a journal that cannot be read at the start is a problem', async () => {
  const disk = createDisk();
  const sessions = () => Promise.reject(new Error('EIO: i/o error'));
  const memory = await start({ ...disk, journal: { ...disk.journal, sessions } });
  await memory.maintenance.flush(10_000);
  expect(memory.maintenance.status().problems).toContainEqual({
    file: 'journal',
    message: 'could not be read to its end: EIO: i/o error',
  });
});
