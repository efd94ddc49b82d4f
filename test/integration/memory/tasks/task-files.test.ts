import { chmod, chown, copyFile, mkdir, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { openPageFiles } from '../../../../memory/storage/fs/page-files.ts';
import { libraryPaths } from '../../../../memory/storage/paths.ts';
import { openTaskFiles } from '../../../../memory/tasks/fs/task-files.ts';
import { TASK, taskFilesContract } from '../../../contract/task-files.ts';
import { createMemoryTaskFiles } from '../../../helpers/memory-task-files.ts';
import { mountSmallDisk } from '../../../helpers/small-disk.ts';
import { readFolder, tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const MONTH = '2026-11';

async function openAt(dir: string) {
  return await openTaskFiles(libraryPaths(dir, { libraryDir: '' }));
}

describe('task files in memory', () => taskFilesContract(async () => createMemoryTaskFiles()));

describe('task files on disk', () => {
  taskFilesContract(async () => openAt(await tempDir()));

  test('are private markdown files in a folder of their status', async () => {
    const dir = await tempDir();
    const files = await openAt(dir);
    const { name } = await files.add('2026-11-23-check-dispenser-47', TASK);
    const file = path.join(dir, 'tasks/active/2026-11-23-check-dispenser-47.md');
    expect(files.getFile(name)).toBe(file);
    expect(((await stat(file)).mode & 0o777).toString(8)).toBe('600');
    expect(((await stat(path.dirname(file))).mode & 0o777).toString(8)).toBe('700');
    await files.update(name, { status: 'blocked' }, MONTH);
    expect(files.getFile(name)).toBe(path.join(dir, 'tasks/blocked', `${name}.md`));
    await files.update(name, { status: 'done' }, MONTH);
    expect(files.getFile(name)).toBe(path.join(dir, 'tasks/done/2026-11', `${name}.md`));
  });

  test('takes edits, moves and new files of the user as they are', async () => {
    const dir = await tempDir();
    const files = await openAt(dir);
    const { name } = await files.add('check', TASK);
    const file = files.getFile(name) as string;
    const mine = (await readFile(file, 'utf8'))
      .replace('Check dispenser 47', 'Check 48')
      .replace('---\n', '---\n# mine\n');
    await writeFile(file, `${mine}\nmore`);
    await writeFile(path.join(dir, 'tasks/active/2026-11-24-Call Mum.md'), '---\ntitle: Call Mum\n---\n');
    expect((await files.load()).tasks.map(({ title }) => title)).toEqual(['Call Mum', 'Check 48']);
    await files.update(name, { priority: 'high' }, MONTH);
    expect(await readFile(file, 'utf8')).toBe(`${mine.replace('medium', 'high')}\nmore`);
    // Dragged to another folder, with its front matter as it was.
    await mkdir(path.join(dir, 'tasks/done/2026-11'), { recursive: true });
    await rename(file, path.join(dir, 'tasks/done/2026-11/check.md'));
    expect((await files.load()).tasks.map(({ title }) => title)).toEqual(['Call Mum']);
    expect((await files.load(true)).tasks.map(({ status }) => status)).toEqual(['active', 'done']);
  });

  test('names the conflict copies of a synchronizer, which surface nothing and go nowhere', async () => {
    const dir = await tempDir();
    const files = await openAt(dir);
    await files.add('good', TASK);
    const active = path.join(dir, 'tasks/active');
    const copies = ["good (Anna's conflicted copy 2026-11-29).md", 'good.sync-conflict-20261129-101010-ABCDEFG.md'];
    for (const copy of copies) await copyFile(path.join(active, 'good.md'), path.join(active, copy));
    const { tasks, problems } = await files.load(true);
    expect(tasks.map(({ name }) => name)).toEqual(['good']);
    expect(problems.map(({ file }) => path.basename(file))).toEqual(copies);
    for (const { message } of problems) expect(message).toContain('is a conflict copy');
    expect((await files.texts()).map(({ name }) => name)).toEqual(['active/good.md']);
    expect((await readdir(active)).sort()).toEqual([...copies, 'good.md'].sort());
  });

  test('names and skips what cannot be read, and keeps it', async () => {
    const dir = await tempDir();
    const files = await openAt(dir);
    await files.add('good', TASK);
    const at = (name: string): string => path.join(dir, 'tasks/active', name);
    await writeFile(at('half.md'), '---\ntitle: Half');
    await writeFile(at('big.md'), `---\ntitle: x\n---\n${'x'.repeat(2_000_000)}`);
    await writeFile(at('bytes.md'), Buffer.from([0xff, 0xfe, 0x00, 0x80]));
    await writeFile(at('topic.md'), '---\ntitle: x\ncreated: 2026-11-24\ntopic: ../../x\n---\n');
    await symlink('/etc/passwd', at('link.md'));
    await mkdir(path.join(dir, 'tasks/blocked'));
    await writeFile(path.join(dir, 'tasks/blocked/GOOD.md'), '---\ntitle: twin\ncreated: 2026-11-24\n---\n');
    const before = await readFolder(dir);
    const { tasks, problems } = await files.load();
    expect(tasks.map(({ title }) => title)).toEqual(['twin']);
    expect(problems.map(({ file }) => path.basename(file)).sort()).toEqual([
      'big.md',
      'bytes.md',
      'good.md',
      'half.md',
      'link.md',
      'topic.md',
    ]);
    await expect(files.update('half', { status: 'done' }, MONTH)).rejects.toMatchObject({ code: 'not_found' });
    expect(await readFolder(dir)).toEqual(before);
  });

  test('leaves a page of the inbox that is no UTF-8 as it is, and says so', async () => {
    const dir = await tempDir();
    const files = await openAt(dir);
    const page = path.join(dir, 'inbox/2026-11-24.md');
    const bytes = Buffer.from('caf\xe9\n- 09:00 gone\nna\xefve\n', 'latin1');
    await mkdir(path.dirname(page));
    await writeFile(page, bytes);
    await expect(files.addToInbox('2026-11-24', '- a line')).rejects.toMatchObject({ code: 'node_invalid' });
    expect(await readFile(page)).toEqual(bytes);
    await files.cleanInbox((line) => line.includes('gone'));
    expect(await readFile(page)).toEqual(Buffer.from('caf\xe9\nna\xefve\n', 'latin1'));
  });

  test('names and skips files that belong to somebody else', async () => {
    const dir = await tempDir();
    const topics = path.join(dir, 'topics');
    const locked = [path.join(dir, 'tasks/active/locked.md'), path.join(dir, 'inbox/2026-11-24.md')];
    const user = process.geteuid?.() ?? 0;
    // For root no file is locked.
    const other = user === 0 ? 65_534 : user;
    await chown(dir, other, -1);
    process.seteuid?.(other);
    try {
      const files = await openAt(dir);
      for (const folder of ['tasks/active', 'inbox', 'topics'])
        await mkdir(path.join(dir, folder), { recursive: true });
      await writeFile(path.join(dir, 'tasks/active/check.md'), '---\ntitle: Check\ncreated: 2026-11-24\n---\n');
      for (const file of [...locked, path.join(topics, 'locked.md')]) await writeFile(file, 'x', { mode: 0o000 });
      await writeFile(path.join(topics, 'mine.md'), 'mine');
      const { tasks, problems } = await files.load(true);
      expect([tasks.length, problems.map(({ file }) => file)]).toEqual([1, locked.slice(0, 1)]);
      await files.cleanInbox((line) => line === 'x');
      expect((await files.texts()).map(({ name }) => name)).toEqual(['active/check.md']);
      const pages = await (await openPageFiles({ dir, nodesDir: dir })).load();
      expect(pages.texts.get('topics/mine.md')).toBe('mine');
      expect(pages.problems.map(({ file }) => path.basename(file))).toEqual(['locked.md', '2026-11-24.md']);
      expect(pages.isWritable).toBe(true);
    } finally {
      process.seteuid?.(user);
    }
  });

  test('replaces no file when a task moves', async () => {
    const dir = await tempDir();
    const files = await openAt(dir);
    await files.add('check', TASK);
    await mkdir(path.join(dir, 'tasks/blocked'));
    const other = path.join(dir, 'tasks/blocked/check.md');
    await writeFile(other, '---\ntitle: half');
    await expect(files.update('check', { status: 'blocked' }, MONTH)).rejects.toMatchObject({ code: 'node_invalid' });
    expect(await readFile(other, 'utf8')).toBe('---\ntitle: half');
    expect((await files.load()).tasks.map(({ title }) => title)).toEqual([TASK.title]);
  });

  test('says what is wrong with a folder that is a file', async () => {
    const dir = await tempDir();
    await writeFile(path.join(dir, 'tasks'), '');
    const files = await openAt(dir);
    expect((await files.load(true)).tasks).toEqual([]);
    await expect(files.add('check', TASK)).rejects.toMatchObject({ code: 'unsafe_file' });
    await chmod(dir, 0o700);
  });
});

const disk = mountSmallDisk(1);
describe.skipIf(disk === null)('task files on a bad disk', () => {
  test('nothing is lost where it is full or read-only', async () => {
    const { dir, fill, readOnly, close } = disk as NonNullable<typeof disk>;
    try {
      const files = await openAt(dir);
      const task = await files.add('check', TASK);
      for (const heal of [fill(), (): void => readOnly(false)]) {
        await expect(files.add('other', TASK)).rejects.toMatchObject({ code: 'unsafe_file' });
        await expect(files.update('check', { title: 'x'.repeat(200) }, MONTH)).rejects.toMatchObject({
          code: 'unsafe_file',
        });
        expect((await files.load()).tasks).toEqual([task]);
        heal();
        if (heal.length === 0) readOnly(true);
      }
      readOnly(false);
      expect((await files.update('check', { title: 'y' }, MONTH)).title).toBe('y');
    } finally {
      close();
    }
  });
});
