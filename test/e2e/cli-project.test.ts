import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CLI, createTestHome, type TestHome } from '../helpers/cli.ts';
import { hasTmux, openTmux } from '../helpers/tmux.ts';

let home: TestHome;
let folder: string;

beforeAll(async () => {
  home = await createTestHome();
  folder = path.join(home.user, 'unpacked');
  await mkdir(path.join(folder, '.git'), { recursive: true });
  await writeFile(path.join(folder, '.git', 'config'), '[remote "origin"]\n\turl = git@example.org:ada/private.git\n');
});

afterAll(() => home.close());

it('project join is not for Claude, whatever it read', async () => {
  const env = { CLAUDECODE: '1' };
  const { code, stderr } = await home.run(['project', 'join', folder, '--yes'], { env });
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('your own terminal') });
  expect(await home.json(['project', 'ls', '--json'])).toEqual({});
});

it.skipIf(!hasTmux())('project join says before it asks what becomes of the memory that the folder has', async () => {
  const terminal = openTmux(home.env, { cwd: folder, columns: 160 });
  try {
    await terminal.type(`${process.execPath} ${CLI} project join`);
    await terminal.shows(/example\.org\/ada\/private \(what this folder kept by itself is left out, .*\)\? \[y\/N\]$/);
    await terminal.type('n');
    await terminal.shows(/\$$/);
  } finally {
    terminal.close();
  }
  expect(await home.json(['project', 'ls', '--json'])).toEqual({});
});

it('project join lets a folder share the memory of its remote', async () => {
  const remote = 'example.org/ada/private';
  const folders = [path.join(folder, '.git')];
  const joined = { project: remote, folders };
  expect(await home.json(['project', 'join', folder, '--yes', '--json'])).toEqual(joined);
  expect(await home.json(['project', 'ls', '--json'])).toEqual({ [remote]: folders });
});

it('project leave takes it back, which Claude cannot', async () => {
  const leave = ['project', 'leave', folder, '--json'];
  expect(await home.run(leave, { env: { CLAUDECODE: '1' } })).toMatchObject({ code: 2 });
  expect(await home.json(leave)).toEqual({ left: ['example.org/ada/private'] });
  expect(await home.json(['project', 'ls', '--json'])).toEqual({});
  expect(await home.run(leave)).toMatchObject({ code: 4, stderr: expect.stringContaining('joined nothing') });
});

it.each([
  [
    'facts allow',
    '.claude/agents/reviewer.md',
    '---\nname: r\ndescription: d\nmemory:\n  prefixes: [Project.]\n---\nhi\n',
  ],
  [
    'ontology allow',
    '.comet-cc/ontology.json',
    '{"version":"0.2","concepts":{"Shop.Ware":{"label":"w","examples":["x"],"persistence_class":"long_term","salience_weight":0.5,"cardinality":9,"eviction":"salience"}}}',
  ],
])('%s keeps what it allows, also as the first command of a home', async (command, file, text) => {
  const env = { COMET_CC_HOME: path.join(home.user, `home of ${command}`) };
  await mkdir(path.join(folder, path.dirname(file)), { recursive: true });
  await writeFile(path.join(folder, file), text);
  const done = await home.run([...command.split(' '), folder, '--yes'], { env });
  expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining('needs your consent again') });
});

it('a folder without a remote has its memory again after a move, by project join --from', async () => {
  const [before, after] = ['old name', 'neuer Name'].map((name) => path.join(home.user, name)) as [string, string];
  await mkdir(before);
  expect((await home.run(['start'])).code).toBe(0);
  expect((await home.run(['todo', 'add', 'renew the key of Tobias'], { cwd: before })).code).toBe(0);
  await rename(before, after);
  const open = async () => (await home.run(['todo'], { cwd: after })).stdout;
  expect(await open()).not.toContain('Tobias');
  expect((await home.run(['project', 'join', '--yes'], { cwd: after })).stderr).toContain('--from');
  expect((await home.run(['project', 'join', '--from', before, '--yes'], { cwd: after })).code).toBe(0);
  expect(await open()).toContain('renew the key of Tobias');
});

it('project ls prints no control characters of a remote', async () => {
  const other = path.join(home.user, 'other');
  await mkdir(path.join(other, '.git'), { recursive: true });
  await writeFile(
    path.join(other, '.git', 'config'),
    '[remote "origin"]\n\turl = git@example.org:ada/\u001b[2Jx.git\n',
  );
  await home.json(['project', 'join', other, '--yes', '--json']);
  const { stdout } = await home.run(['project', 'ls']);
  expect(stdout).toContain('example.org/ada/[2jx\n');
  expect(stdout).not.toContain('\u001b');
});
