import path from 'node:path';
import { CometError } from '../../common/errors.ts';
import { parseTask, patchTask, renderTask, type Task } from '../../memory/model/task.ts';
import type { TaskFiles } from '../../memory/tasks/task-files.ts';

/** Task files without a disk: texts by name. */
export function createMemoryTaskFiles(texts = new Map<string, string>(), pages = new Map<string, string>()): TaskFiles {
  const getKey = (name: string): string | undefined =>
    [...texts.keys()].find((key) => key.toLowerCase() === name.toLowerCase());
  const getText = (name: string): string => {
    const text = texts.get(getKey(name) ?? '');
    if (text === undefined) throw new CometError('not_found', `no task ${name}`);
    return text;
  };
  const valid = (text: string, name: string): Task => {
    const task = parseTask(text, name);
    if (typeof task === 'string') throw new CometError('node_invalid', task);
    return task;
  };
  return {
    async load(all = false) {
      const read = [...texts].map(([name, text]) => ({ name, task: parseTask(text, name) }));
      const tasks = read.flatMap(({ task }) => (typeof task === 'string' ? [] : [task]));
      return {
        tasks: tasks.filter(({ status }) => all || status !== 'done').sort((a, b) => (a.name < b.name ? -1 : 1)),
        problems: read.flatMap(({ name, task }) => (typeof task === 'string' ? [{ file: name, message: task }] : [])),
      };
    },
    async add(stem, task) {
      let name = stem;
      for (let number = 2; getKey(name) !== undefined; number += 1) name = `${stem}-${number}`;
      texts.set(name, renderTask({ ...task, name }));
      return { ...task, name };
    },
    async update(name, patch) {
      const text = getText(name);
      valid(text, name);
      const after = patchTask(text, patch);
      const task = valid(after, getKey(name) ?? name);
      texts.set(task.name, after);
      return task;
    },
    async remove(name) {
      getText(name);
      texts.delete(getKey(name) ?? '');
    },
    getFile: (name) => getKey(name) ?? null,
    readInbox: async (day) => pages.get(day) ?? '',
    async addToInbox(day, line) {
      const page = pages.get(day) ?? `# Inbox ${day}\n\n`;
      if (!page.split('\n').includes(line)) pages.set(day, `${page}${line}\n`);
    },
    async cleanInbox(isGone) {
      for (const [day, page] of pages) {
        const lines = page.split('\n').filter((line) => !isGone(line));
        pages.set(day, lines.join('\n'));
      }
    },
    texts: async () => [...texts].map(([name, text]) => ({ name: `active/${name}.md`, text })),
    async restore({ name: file, text }) {
      const name = path.basename(file, '.md');
      if (getKey(name) !== undefined || typeof parseTask(text, name) === 'string') return false;
      texts.set(name, text);
      return true;
    },
    async replace({ name: file, text }) {
      const name = path.basename(file, '.md');
      valid(text, name);
      texts.delete(getKey(name) ?? '');
      texts.set(name, text);
    },
    readTopic: async () => '',
  };
}
