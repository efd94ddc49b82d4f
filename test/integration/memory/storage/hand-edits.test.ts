import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import type { Memory } from '../../../../memory/index.ts';
import { writtenBy } from '../../../../memory/library.ts';
import type { MemoryNode } from '../../../../memory/model/node.ts';
import { type DiskRig, filesBelow, openOnDisk } from '../../../helpers/disk-rig.ts';
import { createManualWatch } from '../../../helpers/manual-watch.ts';
import type { RigOptions } from '../../../helpers/memory-rig.ts';
import { makeNode } from '../../../helpers/nodes.ts';
import { oneNode, scriptedModel } from '../../../helpers/scripted-model.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { talk } from '../../../helpers/turns.ts';

const tempDir = tempDirs();
const open: Memory[] = [];
afterEach(async () => {
  for (const memory of open.splice(0)) await memory.maintenance.close();
});

async function start(home: string, options: RigOptions = {}): Promise<DiskRig> {
  const rig = await openOnDisk(home, options);
  open.push(rig.memory);
  return rig;
}

const stop = async (rig: DiskRig): Promise<void> => {
  open.splice(open.indexOf(rig.memory), 1);
  await rig.memory.maintenance.close();
};

const first = makeNode({ turns: [], written_by: 'claude' });
const second = makeNode({
  node_id: 'mem_20260301_111500_00000b',
  summary: 'deploy with make ship',
  turns: [],
  written_by: 'claude',
});

async function home(nodes: readonly MemoryNode[] = [first, second]): Promise<{ dir: string; file: string }> {
  const dir = await tempDir();
  const { memory, nodeFiles } = await openOnDisk(dir, { watch: null });
  await nodeFiles.save(nodes);
  await memory.maintenance.flush(60_000);
  await memory.maintenance.close();
  return { dir, file: filesBelow(path.join(dir, 'memory', 'nodes'))[0] as string };
}

async function changed(file: string, change: (text: string) => string): Promise<void> {
  await writeFile(file, change(await readFile(file, 'utf8')));
}

const summaries = (memory: Memory): string[] =>
  memory.library
    .list({ all: true })
    .map(({ summary }) => summary)
    .sort();
const found = async (memory: Memory, query: string): Promise<string[]> =>
  (await memory.recall.search(query, { top: 5 })).map(({ node }) => node.summary);

test('an edit, a new section, a deleted one and a renamed one are followed while memory runs', async () => {
  const { dir, file } = await home();
  const { memory, index } = await start(dir);
  await memory.maintenance.flush(60_000);

  await changed(file, (text) => text.replace('listens on port 5433', 'listens on port 6001 since the walrus'));
  await expect.poll(() => summaries(memory)).toContain('staging database listens on port 6001 since the walrus');
  await memory.maintenance.flush(60_000);
  expect(await found(memory, 'walrus')).toEqual(['staging database listens on port 6001 since the walrus']);
  expect(await found(memory, '5433')).toEqual([]);

  await changed(
    file,
    (text) => text + text.slice(text.indexOf('## mem_')).replaceAll('_00000', '_10000').replace('walrus', 'heron'),
  );
  await expect.poll(() => memory.library.list({ all: true })).toHaveLength(4);

  await changed(file, (text) => text.slice(0, text.indexOf('## mem_20260301_101500_10000a')));
  await expect.poll(() => memory.library.list({ all: true })).toHaveLength(2);
  await memory.maintenance.flush(60_000);
  expect(await found(memory, 'heron')).toEqual([]);

  await changed(file, (text) => text.replace(second.node_id, 'mem_20260301_111500_0000ff'));
  await expect
    .poll(async () => (await memory.library.show('mem_20260301_111500_0000ff', 0)).summary)
    .toBe(second.summary);
  await expect(memory.library.show(second.node_id, 0)).rejects.toMatchObject({ code: 'not_found' });
  await memory.maintenance.flush(60_000);
  expect(new Set((await index.entries()).keys())).toEqual(new Set([first.node_id, 'mem_20260301_111500_0000ff']));
});

test('a file that is moved, and one that is removed, are followed too', async () => {
  const { dir, file } = await home();
  const { memory, nodeFiles } = await start(dir);
  await memory.maintenance.flush(60_000);
  const elsewhere = path.join(dir, 'memory', 'nodes', 'mine', 'my own name.md');
  await mkdir(path.dirname(elsewhere));
  await rename(file, elsewhere);
  await memory.maintenance.flush(60_000);
  expect(memory.library.list({ all: true })).toHaveLength(2);
  await memory.library.edit(first.node_id, { set: { importance: 'HIGH' } });
  expect(filesBelow(path.join(dir, 'memory', 'nodes'))).toEqual([elsewhere]);
  expect((await nodeFiles.load()).nodes).toHaveLength(2);
  await rm(elsewhere);
  await expect.poll(() => memory.library.list({ all: true })).toEqual([]);
});

test('a broken edit is reported with file, key and expected value, harms nothing else, and works when repaired', async () => {
  const { dir, file } = await home();
  const { memory } = await start(dir);
  await memory.maintenance.flush(60_000);
  await changed(file, (text) => text.replace('origin: user', 'origin: user\nimportance: HUGE'));
  await expect.poll(() => memory.maintenance.status().problems).toHaveLength(1);
  const [problem] = memory.maintenance.status().problems;
  expect(problem?.file).toBe(file);
  expect(problem?.message).toMatch(/line 8: mem_20260301_101500_00000a: importance: .*"HIGH"/);
  expect(summaries(memory)).toEqual([second.summary]);
  await memory.library.pin([second.node_id], true);
  expect(await readFile(file, 'utf8')).toContain('importance: HUGE');
  await changed(file, (text) => text.replace('HUGE', 'LOW'));
  await expect.poll(() => memory.maintenance.status().problems).toEqual([]);
  expect((await memory.library.show(first.node_id, 0)).importance).toBe('LOW');
});

test('an edit made while no engine ran is found in its new form only', async () => {
  const { dir, file } = await home();
  await changed(file, (text) => text.replace('listens on port 5433', 'moved to the walrus host'));
  const { memory, index } = await start(dir, { watch: null });
  expect(await memory.maintenance.flush(60_000)).toBe(true);
  expect(await found(memory, 'walrus')).toEqual(['staging database moved to the walrus host']);
  expect(await found(memory, '5433')).toEqual([]);
  expect((await index.entries()).size).toBe(2);
});

const turns = [
  talk('The staging database listens on port 5433.', 'Noted, src/db.ts uses port 5433.'),
  talk('We decided to use pnpm, never npm.', 'Understood: pnpm only.'),
];

test('a section taken out by hand is not made again, its raw turn stays, and put back it is there again', async () => {
  const dir = await tempDir();
  const before = await start(dir, { watch: null });
  before.memory.capture.captureTurns(turns);
  await before.memory.maintenance.flush(60_000);
  const [gone, ...rest] = before.memory.library.list({ all: true });
  const file = filesBelow(path.join(dir, 'memory', 'nodes'))[0] as string;
  const whole = await readFile(file, 'utf8');
  const sections = whole.split(/^(?=## )/m);
  const without = sections.filter((section) => !section.startsWith(`## ${gone?.node_id}`)).join('');
  await writeFile(file, without);
  await before.memory.maintenance.flush(60_000);
  expect(before.memory.library.list({ all: true })).toHaveLength(rest.length);
  await stop(before);

  // Whether it was seen while memory ran, or only at the next start.
  for (const removedWhile of ['running', 'down']) {
    if (removedWhile === 'down') await rm(path.join(dir, 'journal', 'dismissed'), { force: true });
    const after = await start(dir, { watch: null });
    after.memory.capture.captureTurns(turns);
    await after.memory.maintenance.flush(60_000);
    expect(after.memory.library.list({ all: true }), removedWhile).toHaveLength(rest.length);
    expect(await after.memory.library.restoreSession('s1')).toHaveLength(4);
    await writeFile(file, whole);
    await after.memory.maintenance.flush(60_000);
    expect(after.memory.library.list({ all: true })).toHaveLength(rest.length + 1);
    expect((await after.memory.library.show(gone?.node_id as string, 2)).raw?.length).toBeGreaterThan(0);
    await stop(after);
    await writeFile(file, without);
  }
});

test('a draft that was edited by hand is not replaced by the model', async () => {
  const dir = await tempDir();
  let answer: () => void = () => {};
  const asked = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const model = scriptedModel({
    sense: () => ({ logic_flow: 'MAINTAIN', load_level: 1, redundancy_detected: false }),
    compact: async (input) => {
      await asked;
      return oneNode(input, 'what the model says');
    },
  });
  const { memory } = await start(dir, { model, watch: null, idleMs: 0 });
  memory.capture.captureTurns(turns);
  memory.capture.prepareNodes(
    's1',
    turns.map(({ turnId }) => turnId),
  );
  await expect.poll(() => model.compacted).toHaveLength(1);
  const file = filesBelow(path.join(dir, 'memory', 'nodes'))[0] as string;
  await changed(file, (text) => text.replace(/(### Summary\n\n).*/, '$1what I say'));
  answer();
  await memory.maintenance.flush(60_000);
  expect(summaries(memory)).toContain('what I say');
  expect(summaries(memory)).not.toContain('what the model says');
  expect(memory.library.list({ all: true }).find(({ summary }) => summary === 'what I say')?.author).toEqual({
    by: 'user',
  });
});

test('what a model wrote and someone changed is theirs, edited while memory runs, while it does not, or by command', async () => {
  const writers = (memory: Memory): Record<string, string> =>
    Object.fromEntries(memory.library.list({ all: true }).map((node) => [node.summary, writtenBy(node)]));
  const { dir, file } = await home();
  const rig = await start(dir);
  await rig.memory.maintenance.flush(60_000);
  await changed(file, (text) => text.replace('make ship', 'make fly').replace(/\norigin: /, '\nimportance: LOW$&'));
  await expect.poll(() => writers(rig.memory)).toMatchObject({ 'deploy with make fly': 'user' });
  expect(writers(rig.memory)[first.summary]).toBe('claude');
  await rig.memory.maintenance.flush(60_000);
  await stop(rig);
  await changed(file, (text) => text.replace('listens on port 5433', 'listens on port 6001'));
  const again = await start(dir, { watch: null });
  await again.memory.maintenance.flush(60_000);
  expect(new Set(Object.values(writers(again.memory)))).toEqual(new Set(['user']));

  const other = await home();
  const { memory } = await start(other.dir, { watch: null });
  await memory.library.edit(first.node_id, { set: { importance: 'LOW' } });
  expect(writers(memory)[first.summary]).toBe('claude');
  await memory.library.edit(first.node_id, { set: { summary: 'mine' } });
  expect(writers(memory)).toMatchObject({ mine: 'user', [second.summary]: 'claude' });
});

test('our own writes echo nowhere: nothing is written, indexed or removed because of them', async () => {
  const dir = await tempDir();
  const watch = createManualWatch();
  const { memory, index, nodeFiles } = await start(dir, { watch });
  memory.capture.captureTurns(turns);
  await memory.maintenance.flush(60_000);
  const put = vi.spyOn(index, 'put');
  const remove = vi.spyOn(index, 'remove');
  const save = vi.spyOn(nodeFiles, 'save');
  watch.tell(filesBelow(path.join(dir, 'memory')));
  await memory.maintenance.flush(60_000);
  for (const spy of [put, remove, save]) expect(spy).not.toHaveBeenCalled();
  await memory.maintenance.close();
  expect(watch.closed).toBe(true);
});

/** What a reader of the file had in its buffer before memory added the last of `nodes`. */
async function withStaleCopy(nodes: readonly MemoryNode[]) {
  const dir = await tempDir();
  const rig = await start(dir, { watch: null });
  await rig.nodeFiles.save(nodes.slice(0, -1));
  await rig.memory.maintenance.flush(60_000);
  const file = filesBelow(path.join(dir, 'memory', 'nodes'))[0] as string;
  const copy = await readFile(file, 'utf8');
  await rig.nodeFiles.save(nodes.slice(-1));
  await rig.memory.maintenance.flush(60_000);
  expect(summaries(rig.memory)).toHaveLength(nodes.length);
  return { ...rig, dir, file, copy };
}

const third = makeNode({ node_id: 'mem_20260301_121500_00000c', summary: 'the third of them', turns: ['t3'] });
const notes = (memory: Memory): string[] => memory.maintenance.status().notes.map(({ message }) => message);

test('an old copy saved over a newer memory removes what its reader removed, and no more', async () => {
  const { memory, file, copy } = await withStaleCopy([first, second, third]);
  const sections = copy.split(/^(?=## )/m);
  await writeFile(file, sections.filter((section) => !section.includes(second.node_id)).join(''));
  await memory.maintenance.flush(60_000);
  expect(summaries(memory)).toEqual([first.summary, third.summary].sort());
  expect(await readFile(file, 'utf8')).toContain(third.node_id);
  expect(notes(memory)).toEqual([
    expect.stringContaining('saved over 1 newer memories; they were put back'),
    expect.stringMatching(/^1 memories were taken out of its file; `comet-cc memory rollback \S+` undoes it/),
  ]);
  const [snapshot] = await memory.maintenance.listSnapshots();
  await memory.maintenance.rollback(snapshot?.id as string);
  expect(summaries(memory)).toHaveLength(3);

  // Whoever saves what memory wrote since then has seen the third.
  const whole = await readFile(file, 'utf8');
  await writeFile(
    file,
    whole
      .split(/^(?=## )/m)
      .filter((section) => !section.includes(third.node_id))
      .join(''),
  );
  await memory.maintenance.flush(60_000);
  expect(summaries(memory)).toEqual([first.summary, second.summary].sort());
});

test('an old copy saved while memory is stopped dismisses no turn that its reader did not see', async () => {
  const dir = await tempDir();
  const before = await start(dir, { watch: null });
  before.memory.capture.captureTurns(turns.slice(0, 1));
  await before.memory.maintenance.flush(60_000);
  const file = filesBelow(path.join(dir, 'memory', 'nodes'))[0] as string;
  const copy = await readFile(file, 'utf8');
  before.memory.capture.captureTurns(turns.slice(1));
  await before.memory.maintenance.flush(60_000);
  const count = summaries(before.memory).length;
  expect(await readFile(file, 'utf8')).not.toBe(copy);
  await stop(before);
  await writeFile(file, copy);
  const after = await start(dir, { watch: null });
  await after.memory.maintenance.flush(60_000);
  expect(summaries(after.memory)).toHaveLength(count);
});

test('rm leaves no trace of an id in the marks of a file', async () => {
  const { memory, file } = await withStaleCopy([first, second, third]);
  expect((await readFile(file, 'utf8')).split('\n')[4]).toBe('seen: "00000a 00000b 00000c"');
  const { library } = memory;
  await library.remove([second.node_id]);
  expect(await readFile(file, 'utf8')).not.toContain('00000b');
});
