import { chmod, mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { MemoryNode, StoredBrief } from '../../../../memory/model/node.ts';
import { openNodeFiles } from '../../../../memory/storage/fs/node-files.ts';
import type { NodeFiles } from '../../../../memory/storage/node-files.ts';
import { makeNode } from '../../../helpers/nodes.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();

const first = makeNode();
const second = makeNode({
  node_id: 'mem_20260301_111500_00000b',
  summary: 'deploy with `make ship`',
  turns: ['end-2'],
});
const elsewhere = makeNode({ node_id: 'mem_20260302_101500_00000c', session_id: 's-2', project: '/home/dev/blog' });

async function open(root: string): Promise<NodeFiles> {
  return openNodeFiles({ nodesDir: path.join(root, 'nodes'), briefsDir: path.join(root, 'briefs') });
}

async function allFiles(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort();
}

const byId = (nodes: readonly MemoryNode[]): MemoryNode[] =>
  [...nodes].sort((a, b) => (a.node_id < b.node_id ? -1 : 1));

test('nodes of several sessions are saved and loaded again', async () => {
  const root = await tempDir();
  await (await open(root)).save([first, second, elsewhere]);
  const files = await open(root);
  const { nodes, problems } = await files.load();
  expect(byId(nodes)).toEqual([first, second, elsewhere]);
  expect(problems).toEqual([]);
  expect((await allFiles(root)).map((file) => path.basename(file))).toEqual(['s-2.md', 's-1.md']);
});

test('a saved node replaces the one of the same id, also without loading first', async () => {
  const root = await tempDir();
  await (await open(root)).save([first, second]);
  const changed = { ...first, summary: 'staging database listens on port 6000', depth_level: 3 };
  await (await open(root)).save([changed]);
  expect(byId((await (await open(root)).load()).nodes)).toEqual([changed, second]);
});

test('a section that no longer says what was read stays as it is, valid or not', async () => {
  const root = await tempDir();
  const files = await open(root);
  await files.save([first, second]);
  const read = new Map([first, second].map((node) => [node.node_id, node]));
  const [file] = (await allFiles(root)) as [string];
  for (const edited of ['make fly', 'make ship`\n\n## mem_none `']) {
    const text = (await readFile(file, 'utf8')).replace(/make \w+/, edited);
    await writeFile(file, text);
    await files.save([{ ...second, importance: 'LOW' }], read);
    expect(await readFile(file, 'utf8')).toBe(text);
  }
  await files.save([{ ...first, importance: 'LOW' }], read);
  expect((await files.load()).nodes).toContainEqual({ ...first, importance: 'LOW' });
});

test('a node that was saved is the very same when its file is read, unless someone changed it there', async () => {
  const root = await tempDir();
  const files = await open(root);
  await files.save([first, second]);
  const { nodes } = await files.load();
  expect(nodes.every((node) => node === first || node === second)).toBe(true);
  const changed = { ...first, depth_level: 7 };
  await files.save([changed]);
  const [file = ''] = await allFiles(root);
  await writeFile(file, (await readFile(file, 'utf8')).replace('depth_level: 7', 'depth_level: 8'));
  const read = (await files.load()).nodes.find(({ node_id }) => node_id === first.node_id);
  expect(read).toEqual({ ...first, depth_level: 8 });
});

test('a node that changed its project moves', async () => {
  const root = await tempDir();
  const files = await open(root);
  await files.save([first, second]);
  await files.save([{ ...first, project: '/home/dev/blog' }]);
  expect(byId((await files.load()).nodes)).toEqual([{ ...first, project: '/home/dev/blog' }, second]);
});

test('saves at the same time all arrive', async () => {
  const root = await tempDir();
  const files = await open(root);
  const nodes = Array.from({ length: 20 }, (_, at) => makeNode({ node_id: `mem_20260301_101500_0000${at + 10}` }));
  await Promise.all(nodes.map((node) => files.save([node])));
  expect(byId((await files.load()).nodes)).toEqual(nodes);
});

test('a broken section is reported, survives every other save byte for byte, and works again when repaired', async () => {
  const root = await tempDir();
  const files = await open(root);
  await files.save([first, second]);
  const [file] = (await allFiles(root)) as [string];
  const broken = (await readFile(file, 'utf8')).replace('origin: user', 'origin: HUGE  # why not?');
  await writeFile(file, broken.replace('\n### Source', '\nmy own words here\n\n### Source'));
  const { nodes, problems } = await files.load();
  expect(nodes).toEqual([second]);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatchObject({ file, message: expect.stringMatching(/line \d+: mem_.*00000a.*origin/) });

  await files.save([{ ...second, importance: 'LOW' }]);
  const after = await readFile(file, 'utf8');
  expect(after).toContain('origin: HUGE  # why not?');
  await writeFile(file, after.replace('HUGE  # why not?', 'tool').replace('my own words here\n', ''));
  expect((await files.load()).nodes).toEqual([
    { ...first, origin: 'tool' },
    { ...second, importance: 'LOW' },
  ]);
});

test('where a broken section has to give way to its own node, it is set aside, and goes when the node goes', async () => {
  const root = await tempDir();
  const files = await open(root);
  await files.save([first, second]);
  const [file] = (await allFiles(root)) as [string];
  await writeFile(file, (await readFile(file, 'utf8')).replace('origin: user', 'origin: HUGE'));
  await files.save([first]);
  expect(await readFile(`${file}.invalid-1`, 'utf8')).toContain('HUGE');
  expect((await files.load()).problems).toEqual([]);
  await files.remove([first.node_id]);
  expect(await allFiles(root)).toEqual([file]);
});

test('a file without readable front matter is reported and kept, and the session continues in another file', async () => {
  const root = await tempDir();
  const files = await open(root);
  await files.save([first]);
  const [file] = (await allFiles(root)) as [string];
  for (const damage of [Buffer.from('gone'), Buffer.from([0xff, 0xfe, 0x00])]) {
    await writeFile(file, damage);
    expect((await files.load()).problems).toMatchObject([{ file }]);
    await files.save([second]);
    expect(await readFile(file)).toEqual(damage);
    expect((await files.load()).nodes).toEqual([second]);
  }
});

test('of two sections with one id the first counts and the second is named', async () => {
  const root = await tempDir();
  const files = await open(root);
  await files.save([first]);
  const [file] = (await allFiles(root)) as [string];
  const text = await readFile(file, 'utf8');
  await writeFile(file, text + text.slice(text.indexOf('## mem_')));
  const { nodes, problems } = await files.load();
  expect(nodes).toEqual([first]);
  expect(problems[0]?.message).toMatch(/expected each id once/);
});

test('a conflict copy of a file that is synchronized counts after the file', async () => {
  const root = await tempDir();
  const files = await open(root);
  await files.save([first]);
  const [file] = (await allFiles(root)) as [string];
  const text = await readFile(file, 'utf8');
  for (const name of [" (Anna's conflicted copy 2026-11-29)", '.sync-conflict-20261129-101010-ABCDEFG', '-laptop'])
    await writeFile(file.replace('.md', `${name}.md`), text.replaceAll('staging', 'other'));
  const { nodes, problems } = await files.load();
  expect(nodes).toEqual([first]);
  expect(problems.map((problem) => problem.file)).not.toContain(file);
});

test('what is in a trash or among old versions is no memory, and goes with the memory', async () => {
  const root = await tempDir();
  const files = await open(root);
  await files.save([first, second]);
  const [file] = (await allFiles(root)) as [string];
  const trash = path.join(root, 'nodes', '.trash', 's-1.md');
  await mkdir(path.dirname(trash));
  await rename(file, trash);
  await writeFile(path.join(path.dirname(file), '._s-1.md'), 'AppleDouble');
  expect(await files.load([file, trash])).toMatchObject({ nodes: [], problems: [] });
  expect(await (await open(root)).load()).toMatchObject({ nodes: [], problems: [] });
  await files.remove([second.node_id]);
  const left = await readFile(trash, 'utf8');
  expect([left.includes(first.node_id), left.includes(second.node_id)]).toEqual([true, false]);
});

test('removed nodes leave nothing behind, unknown ids are no error', async () => {
  const root = await tempDir();
  await (await open(root)).save([first, second, elsewhere]);
  const files = await open(root);
  await files.remove([second.node_id, elsewhere.node_id, 'mem_20200101_000000_ffffff']);
  expect((await files.load()).nodes).toEqual([first]);
  const left = await allFiles(root);
  expect(left).toHaveLength(1);
  expect(await readFile(left[0] as string, 'utf8')).not.toContain('make ship');
});

test('files and directories are for the owner alone, also when they were not', async () => {
  const root = await tempDir();
  const files = await open(root);
  await files.save([first]);
  const [file] = (await allFiles(root)) as [string];
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect((await stat(path.dirname(file))).mode & 0o777).toBe(0o700);
  await chmod(file, 0o644);
  await files.save([second]);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

test('what a crash left half-written is cleared away', async () => {
  const root = await tempDir();
  await (await open(root)).save([first]);
  const [file] = (await allFiles(root)) as [string];
  await writeFile(`${file}.0123456789ab.tmp`, 'half');
  await writeFile(`${file}.tmp`, 'of an editor');
  await open(root);
  expect(await allFiles(root)).toEqual([file, `${file}.tmp`]);
});

test('a brief is written whole, read back, and told apart by session', async () => {
  const root = await tempDir();
  const files = await open(root);
  const brief: StoredBrief = {
    session_id: '../odd',
    project: '/home/dev/shop',
    updated_at: '2026-03-01T10:15:00.000Z',
    active: [{ text: 'migrating to port 5433', sources: ['end-1'], origin: 'user' }],
    hints: [{ text: 'tests need `--pool forks`', sources: ['end-2'], origin: 'tool' }],
  };
  expect(await files.readBrief('../odd')).toBeNull();
  await files.writeBrief({ ...brief, active: [] });
  await files.writeBrief(brief);
  expect(await (await open(root)).readBrief('../odd')).toEqual(brief);
  expect(await files.readBrief('s-1')).toBeNull();
  const [file] = (await allFiles(root)) as [string];
  await writeFile(file, 'scribble');
  expect(await files.readBrief('../odd')).toBeNull();
  expect((await files.load()).problems).toMatchObject([{ file }]);
  await files.writeBrief(brief);
  expect(await readFile(`${file}.invalid-1`, 'utf8')).toBe('scribble');
});
