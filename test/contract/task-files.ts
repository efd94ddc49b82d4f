import { expect, test } from 'vitest';
import type { Task } from '../../memory/model/task.ts';
import type { TaskFiles } from '../../memory/tasks/task-files.ts';

export const TASK: Omit<Task, 'name'> = {
  ...{ title: 'Check dispenser 47', created: '2026-11-23T10:00:00.000Z', status: 'active', priority: 'medium' },
  ...{ mode: 'notify', depends_on: [], sources: [], origin: 'user', project: '', body: '\n## What\n\nIt leaks.\n' },
};
const MONTH = '2026-11';

/** What every TaskFiles must keep; call it inside a describe block. */
export function taskFilesContract(open: () => Promise<TaskFiles>): void {
  const titles = async (files: TaskFiles, all = false): Promise<string[]> =>
    (await files.load(all)).tasks.map(({ title }) => title);

  test('has nothing at first', async () => {
    const files = await open();
    expect(await files.load(true)).toEqual({ tasks: [], problems: [] });
    expect(await files.readInbox('2026-11-24')).toBe('');
    expect(await files.readTopic('billing')).toBe('');
    expect(files.getFile('x')).toBeNull();
  });

  test('gives each task a name of its own, in whatever case', async () => {
    const files = await open();
    const added = [await files.add('check', TASK), await files.add('check', TASK), await files.add('Check', TASK)];
    expect(new Set(added.map(({ name }) => name.toLowerCase())).size).toBe(3);
    expect((await files.load()).tasks).toEqual(added.toSorted((a, b) => (a.name < b.name ? -1 : 1)));
  });

  test('lists done tasks only where all are asked for, and takes a status back', async () => {
    const files = await open();
    const { name } = await files.add('check', TASK);
    for (const status of ['done', 'blocked', 'active', 'blocked', 'done', 'active'] as const) {
      expect(await files.update(name, { status }, MONTH)).toEqual({ ...TASK, name, status });
      expect(await titles(files)).toEqual(status === 'done' ? [] : [TASK.title]);
      expect(await titles(files, true)).toEqual([TASK.title]);
    }
  });

  test('changes the values that are given and removes those that are undefined', async () => {
    const files = await open();
    const { name } = await files.add('check', { ...TASK, trigger: 'friday', fired: TASK.created });
    const changed = await files.update(name, { title: 'Other', fired: undefined }, MONTH);
    expect(changed).toEqual({ ...TASK, name, title: 'Other', trigger: 'friday' });
    expect((await files.load()).tasks).toEqual([changed]);
  });

  test('edits what stands after the front matter', async () => {
    const files = await open();
    const { name } = await files.add('check', TASK);
    await files.update(name, { editBody: (body) => `${body}- more\n` }, MONTH);
    expect((await files.load()).tasks).toEqual([{ ...TASK, name, body: `${TASK.body}- more\n` }]);
  });

  test('refuses what would not validate, and leaves the task as it is', async () => {
    const files = await open();
    const task = await files.add('check', TASK);
    await expect(files.update('check', { topic: '../../x' }, MONTH)).rejects.toMatchObject({ code: 'node_invalid' });
    expect((await files.load()).tasks).toEqual([task]);
  });

  test('writes a task that came from elsewhere in place of the one with its name', async () => {
    const files = await open();
    const { name } = await files.add('check', TASK);
    const [file] = await files.texts();
    const text = (file?.text ?? '').replace(TASK.title, 'Other');
    await files.replace({ name: `active/${name}.md`, text });
    expect((await files.load()).tasks).toEqual([{ ...TASK, name, title: 'Other' }]);
    await files.replace({
      name: `done/${MONTH}/${name}.md`,
      text: text.replace('---\n', '---\nstatus: done\n').replace('status: active\n', ''),
    });
    expect([await titles(files), await titles(files, true)]).toEqual([[], ['Other']]);
    await expect(files.replace({ name: 'active/check.md', text: 'none' })).rejects.toMatchObject({
      code: 'node_invalid',
    });
  });

  test('knows no task that was removed', async () => {
    const files = await open();
    await files.add('check', TASK);
    await files.remove('check');
    expect(await titles(files, true)).toEqual([]);
    await expect(files.remove('check')).rejects.toMatchObject({ code: 'not_found' });
    await expect(files.update('check', {}, MONTH)).rejects.toMatchObject({ code: 'not_found' });
  });

  test('adds a line to the page of a day once', async () => {
    const files = await open();
    for (const line of ['- 09:00 one', '- 09:05 two', '- 09:00 one']) await files.addToInbox('2026-11-24', line);
    expect(await files.readInbox('2026-11-24')).toBe('# Inbox 2026-11-24\n\n- 09:00 one\n- 09:05 two\n');
  });

  test('takes lines out of every page of the inbox', async () => {
    const files = await open();
    for (const day of ['2026-11-24', '2026-11-25']) {
      await files.addToInbox(day, '- 09:00 one');
      await files.addToInbox(day, '- 09:05 two');
    }
    await files.cleanInbox((line) => line.endsWith('one'));
    expect(await files.readInbox('2026-11-24')).toBe('# Inbox 2026-11-24\n\n- 09:05 two\n');
    expect(await files.readInbox('2026-11-25')).not.toContain('one');
  });

  test('gives every text, and takes back those whose name is free', async () => {
    const from = await open();
    const task = await from.add('check', TASK);
    const texts = await from.texts();
    expect(texts.map(({ name }) => name)).toEqual(['active/check.md']);
    const to = await open();
    for (const file of [...texts, ...texts, { name: 'active/bad.md', text: 'no task' }]) await to.restore(file);
    expect(await to.load(true)).toEqual({ tasks: [task], problems: [] });
  });

  test('keeps every one of many changes at once', async () => {
    const files = await open();
    await Promise.all(Array.from({ length: 8 }, () => files.add('check', TASK)));
    const { tasks } = await files.load();
    await Promise.all(tasks.map(({ name }, at) => files.update(name, { title: `title ${at}` }, MONTH)));
    expect(new Set(await titles(files)).size).toBe(8);
  });
}
