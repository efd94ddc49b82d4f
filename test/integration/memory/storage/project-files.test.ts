import { execFileSync } from 'node:child_process';
import { appendFile, mkdir, rename, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import {
  createProjectOf,
  createSourceFiles,
  getRemote,
  joinEarlierFolders,
  openJoinedFolders,
} from '../../../../memory/storage/fs/project-files.ts';
import { openJournal } from '../../../../memory/storage/fs/turn-log.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { talk } from '../../../helpers/turns.ts';

const tempDir = tempDirs();
const sources = createSourceFiles({ now: Date.now });
const LONG_AGO = new Date('2026-01-01T00:00:00Z');

async function project(): Promise<{
  readonly root: string;
  readonly put: (file: string, text: string) => Promise<string>;
}> {
  const root = path.join(await tempDir(), 'shop');
  const put = async (file: string, text: string): Promise<string> => {
    const whole = path.join(root, file);
    await mkdir(path.dirname(whole), { recursive: true });
    await writeFile(whole, text);
    return whole;
  };
  await put('.git/HEAD', 'ref: refs/heads/main\n');
  await put('.git/refs/heads/main', `${'ab12'.repeat(10)}\n`);
  return { root, put };
}

test('a mark holds path, digest and commit, and tells what became of the file', async () => {
  const { root, put } = await project();
  const file = await put('src/db.ts', 'port 5433');
  const mark = await sources.mark(root, 'src/db.ts');
  expect(mark).toEqual({ path: 'src/db.ts', sha256: 'c4c845a7a903d5ea', commit: 'ab12ab12ab12' });
  if (mark === null) throw new Error('no mark');
  expect(await sources.compare(root, mark)).toBe('same');
  await appendFile(file, '!');
  expect(await sources.compare(root, mark)).toBe('changed');
  await writeFile(file, 'port 5433');
  expect(await sources.compare(root, mark)).toBe('same');
  await rm(path.join(root, 'src'), { recursive: true });
  expect(await sources.compare(root, mark)).toBe('deleted');
  await rename(root, `${root}-away`);
  expect(await sources.compare(root, mark)).toBe('unknown');
});

test('packed refs, a detached head and a worktree name their commit', async () => {
  const { root, put } = await project();
  await put('a.ts', 'a');
  await rm(path.join(root, '.git/refs/heads/main'));
  await put('.git/packed-refs', `# pack-refs\n${'cd34'.repeat(10)} refs/heads/main\n`);
  const fresh = (): Promise<string | undefined> =>
    createSourceFiles({ now: Date.now })
      .mark(root, 'a.ts')
      .then((mark) => mark?.commit);
  expect(await fresh()).toBe('cd34cd34cd34');
  await put('.git/HEAD', `${'ef56'.repeat(10)}\n`);
  expect(await fresh()).toBe('ef56ef56ef56');
  await put('.git/HEAD', 'ref: refs/heads/../../../../secret\n');
  expect(await fresh()).toBe('');
  await put('.git/worktrees/fix/HEAD', 'ref: refs/heads/main\n');
  await put('.git/worktrees/fix/commondir', '../..\n');
  await put('fix/.git', `gitdir: ${root}/.git/worktrees/fix\n`);
  await put('fix/a.ts', 'a');
  expect(sources.getRoot(path.join(root, 'fix'))).toBe(path.join(root, 'fix'));
  expect((await sources.mark(path.join(root, 'fix'), 'a.ts'))?.commit).toBe('cd34cd34cd34');
});

test('secret files, large ones and pipes are never opened', async () => {
  const { root, put } = await project();
  await put('.env', 'KEY=1');
  const large = await put('dump.sql', '');
  await truncate(large, 5 * 1024 * 1024);
  execFileSync('mkfifo', [path.join(root, 'pipe')]);
  expect(await sources.mark(root, '.env')).toMatchObject({ path: '.env', sha256: '' });
  expect(await sources.mark(root, 'dump.sql')).toMatchObject({ path: 'dump.sql', sha256: '' });
  for (const none of ['pipe', 'src', 'missing.ts', '../outside']) expect(await sources.mark(root, none)).toBeNull();
  const guess = { path: '.env', sha256: '0123456789abcdef', commit: '' };
  expect(await sources.compare(root, guess)).toBe('unknown');
  expect(await sources.compare(root, { ...guess, path: 'pipe' })).toBe('unknown');
});

test('a link that leaves the project, or leads to a secret, is not followed', async () => {
  const { root, put } = await project();
  const outside = path.join(path.dirname(root), 'outside');
  await mkdir(outside);
  await writeFile(path.join(outside, 'a.ts'), 'outside');
  await put('secrets/key.txt', 'secret');
  await put('real.ts', 'inside');
  await symlink(path.join(outside, 'a.ts'), path.join(root, 'out.ts'));
  await symlink(outside, path.join(root, 'lib'));
  await symlink(path.join(root, 'secrets/key.txt'), path.join(root, 'key.ts'));
  await symlink(path.join(root, 'real.ts'), path.join(root, 'in.ts'));
  expect(await sources.mark(root, 'out.ts')).toBeNull();
  expect(await sources.mark(root, 'lib/a.ts')).toBeNull();
  expect(await sources.mark(root, 'key.ts')).toMatchObject({ sha256: '' });
  expect((await sources.mark(root, 'in.ts'))?.sha256).toBe((await sources.mark(root, 'real.ts'))?.sha256);
});

test('a file whose stamps stayed is not read again; one written this moment is', async () => {
  const { root, put } = await project();
  const file = await put('a.ts', 'one');
  await utimes(file, LONG_AGO, LONG_AGO);
  const mark = await sources.mark(root, 'a.ts');
  if (mark === null) throw new Error('no mark');
  await writeFile(file, 'two');
  await utimes(file, LONG_AGO, LONG_AGO);
  // Its ctime tells.
  expect(await sources.compare(root, mark)).toBe('changed');
  const now = createSourceFiles({ now: Date.now });
  const written = await now.mark(root, 'a.ts');
  expect(written?.sha256).not.toBe(mark.sha256);
});

test('places are inside the root or none', () => {
  expect(sources.getPlace('/p/shop/src/a.ts', '/p/shop', '/p/shop/src')).toBe('src/a.ts');
  expect(sources.getPlace('a.ts', '/p/shop', '/p/shop/src')).toBe('src/a.ts');
  for (const file of [
    '../../x',
    '/p/shop',
    '/etc/passwd',
    '/p/shop/node_modules/a/b.js',
    '/p/shop/.git/config',
    'a\0b',
  ]) {
    expect(sources.getPlace(file, '/p/shop', '/p/shop/src')).toBeNull();
  }
  expect(sources.getRoot('/')).toBeNull();
  expect(sources.getRoot(null)).toBeNull();
});

async function clone(remote: string): Promise<string> {
  const dir = await tempDir();
  await mkdir(path.join(dir, '.git'));
  await writeFile(path.join(dir, '.git', 'config'), `[remote "origin"]\n\turl = ${remote}\n`);
  return dir;
}

test('a folder has a project of its own until the user lets it join that of its remote', async () => {
  const home = await tempDir();
  const [own, unpacked] = [await clone('git@git.example:me/shop.git'), await clone('https://git.example/me/shop')];
  const joined = openJoinedFolders(path.join(home, 'projects.json'));
  const getProject = createProjectOf(Date.now, joined);
  // Nothing is decided before an earlier home was read.
  expect(getProject(own)).toBe('git.example/me/shop');
  await joined.add([]);
  expect([own, unpacked].map(getProject)).toEqual([own, unpacked]);
  await joined.add([{ remote: 'git.example/me/shop', common: path.join(own, '.git') }]);
  expect([own, path.join(own, 'src'), unpacked].map(getProject)).toEqual([
    'git.example/me/shop',
    'git.example/me/shop',
    unpacked,
  ]);
  expect(createProjectOf(Date.now, openJoinedFolders(path.join(home, 'projects.json')))(own)).toBe(
    'git.example/me/shop',
  );
  await joined.add([{ remote: 'git.example/me/shop', common: path.join(unpacked, '.git') }]);
  const left = [{ remote: 'git.example/me/shop', common: path.join(own, '.git') }];
  expect(joined.joinedBy(path.join(own, 'src'))).toEqual(left);
  await joined.add(left, false);
  expect([own, unpacked].map(getProject)).toEqual([own, 'git.example/me/shop']);
  expect(joined.joinedBy(own)).toEqual([]);
});

test('a folder that was moved has the memory of what it was before, once the user says so', async () => {
  const root = await tempDir();
  const [first, second, third] = ['first', 'second', 'third'].map((name) => path.join(root, name)) as [
    string,
    string,
    string,
  ];
  await mkdir(path.join(second, '.git'), { recursive: true });
  const joined = openJoinedFolders(path.join(root, 'projects.json'));
  const getProject = createProjectOf(Date.now, joined);
  await joined.add([]);
  expect(getProject(path.join(second, 'src'))).toBe(second);
  await joined.add([{ remote: path.join(root, 'mistyped'), common: second }]);
  await joined.add([{ remote: first, common: second }]);
  expect([first, path.join(second, 'src'), third].map(getProject)).toEqual([first, first, third]);
  await joined.add([{ remote: joined.ofPath(second), common: third }]);
  expect(getProject(third)).toBe(first);
  const left = joined.joinedBy(second);
  expect(left.map(({ remote }) => remote)).toEqual([path.join(root, 'mistyped'), first]);
  await joined.add(left, false);
  expect(Object.keys(joined.all())).toEqual([first]);
  expect([second, third].map(getProject)).toEqual([second, first]);
});

test('folders that join at the same moment, by several commands, all join', async () => {
  const file = path.join(await tempDir(), 'home', 'projects.json');
  const names = ['one', 'two', 'three', 'four'];
  await Promise.all(
    names.map((name) => openJoinedFolders(file).add([{ remote: `git.example/${name}`, common: name }])),
  );
  expect(Object.keys(openJoinedFolders(file).all()).sort()).toEqual(names.map((name) => `git.example/${name}`).sort());
});

test('a .git file of an archive joins no project until the user allows it', async () => {
  const own = await clone('git@git.example:me/shop.git');
  const archive = path.join(await tempDir(), 'archive');
  await mkdir(archive);
  await writeFile(path.join(archive, '.git'), `gitdir: ${path.join(own, '.git')}\n`);
  const joined = openJoinedFolders(path.join(await tempDir(), 'projects.json'));
  await joined.add([{ remote: 'git.example/me/shop', common: path.join(own, '.git') }]);
  expect(createProjectOf(Date.now, joined)(archive)).toBe(archive);
  const consent = getRemote(archive);
  if (consent === null) throw new Error('no remote');
  await joined.add([consent]);
  expect(createProjectOf(Date.now, joined)(archive)).toBe('git.example/me/shop');
});

test('folders that an earlier version worked in keep their project', async () => {
  const home = await tempDir();
  const [used, other] = [await clone('https://git.example/me/shop'), await clone('https://git.example/me/shop')];
  const journal = await openJournal({ dir: path.join(home, 'journal'), report: () => {} });
  const turn = { ...talk('hello', 'hi', { projectDir: used }), project: 'git.example/me/shop', redacted: false };
  await journal.append(turn);
  await journal.append({ ...talk('hey', 'hi', { projectDir: other }), project: other, redacted: false });
  const joined = openJoinedFolders(path.join(home, 'projects.json'));
  await joinEarlierFolders(journal, joined);
  await journal.close();
  expect([used, other].map(createProjectOf(Date.now, joined))).toEqual(['git.example/me/shop', other]);
});
