import { lstat, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { createMutex, type Mutex } from '../../../common/async.ts';
import { CometError, getReason, type Problem } from '../../../common/errors.ts';
import {
  createExclusive,
  ensureDir,
  orMissing,
  readFileIfPresent,
  syncDir,
  writeFileAtomic,
} from '../../../common/files.ts';
import { parseTask, patchTask, renderTask, type Task, type TaskPatch } from '../../model/task.ts';
import { TASK_STATUSES } from '../../model/task-status.ts';
import {
  conflictCopy,
  createFileCache,
  decoded,
  decodedIfAllowed,
  filesBelow,
  NO_FILE,
  orDenied,
  removeDurably,
  removeTempFiles,
} from '../../storage/fs/file-cache.ts';
import type { libraryPaths } from '../../storage/paths.ts';
import type { TaskFiles, TaskText } from '../task-files.ts';

type Status = Task['status'];

const ENDING = '.md';
const NAME = /^(?:active|blocked|done\/\d{4}-\d\d)\/[^/\\]+\.md$/;
/** Progress of a task: where folder and front matter differ, the later one counts. */
const rank = (status: Status): number => TASK_STATUSES.indexOf(status);
const getKey = (name: string): string => name.toLowerCase();

/**
 * Tasks as `active/NAME.md`, `blocked/NAME.md` and `done/YYYY-MM/NAME.md`, read again before each change. Nothing is
 * created before the first write, so that a folder which cannot be written to can still be read.
 * @param exclusive  held during each change, inbox pages included
 */
export async function openTaskFiles(
  { root, tasksDir, inboxDir }: ReturnType<typeof libraryPaths>,
  exclusive: Mutex = createMutex(),
): Promise<TaskFiles> {
  for (const dir of [tasksDir, inboxDir]) await removeTempFiles(dir).catch(() => undefined);
  const folder = createTaskFolder(tasksDir);
  const inboxFile = (day: string): string => path.join(inboxDir, `${day}${ENDING}`);
  return {
    load: (all = false) => exclusive(() => folder.load(all)),
    getFile: folder.getFile,
    add: (stem, task) => exclusive(() => folder.add(stem, task)),
    update: (name, patch, month) => exclusive(() => folder.update(name, patch, month)),
    remove: (name) => exclusive(() => folder.remove(name)),
    readInbox: async (day) => (await readFileIfPresent(inboxFile(day))) ?? '',
    addToInbox: (day, line) =>
      exclusive(() =>
        writing(inboxDir, async () => {
          const file = inboxFile(day);
          const text = (await readFileIfPresent(file)) ?? `# Inbox ${day}\n\n`;
          if (text !== '' && (await decoded(file)) === '')
            throw new CometError('node_invalid', `${file} is no UTF-8 text; rename it`);
          if (text.split('\n').includes(line)) return;
          await writeFileAtomic(file, `${text}${text.endsWith('\n') ? '' : '\n'}${line}\n`);
        }),
      ),
    cleanInbox: (isGone) =>
      exclusive(async () => {
        for (const file of await filesBelow(inboxDir, (name) => name.endsWith(ENDING))) {
          // What is looked for is ASCII, and a page in any encoding keeps its other bytes.
          const lines = (await readFile(file, 'latin1').catch(orDenied)).split('\n');
          const rest = lines.filter((line) => !isGone(line));
          const bytes = Buffer.from(rest.join('\n'), 'latin1');
          if (rest.length < lines.length) await writing(inboxDir, () => writeFileAtomic(file, bytes));
        }
      }),
    texts: () => exclusive(() => textsBelow(tasksDir)),
    restore: (file) => exclusive(() => restoreFile(file, tasksDir, folder)),
    replace: (file) => exclusive(() => replaceFile(file, tasksDir, folder)),
    readTopic: async (topic) => (await decodedIfAllowed(path.join(root, 'topics', `${topic}${ENDING}`))) ?? '',
  };
}

type TaskFolder = ReturnType<typeof createTaskFolder>;

function createTaskFolder(tasksDir: string) {
  const getDir = (status: Status): string => path.join(tasksDir, status);
  const getStatusAt = (file: string): Status =>
    TASK_STATUSES.find((status) => file.startsWith(getDir(status) + path.sep)) ?? 'active';
  const caches = TASK_STATUSES.map((status) =>
    createFileCache(getDir(status), (file, text) => readTask(file, text, status), decodedIfAllowed),
  );
  const files = new Map<string, string>();

  async function load(all: boolean): ReturnType<TaskFiles['load']> {
    const read = await Promise.all(caches.slice(0, all ? 3 : 2).map((cache) => cache.read()));
    const problems: Problem[] = [];
    const tasks: Task[] = [];
    files.clear();
    // A task that was copied and not moved counts as what it became.
    for (const { file, read: task } of read.toReversed().flat()) {
      const other = typeof task === 'string' ? undefined : files.get(getKey(task.name));
      if (typeof task === 'string') problems.push({ file, message: task });
      else if (other !== undefined) problems.push({ file, message: `has the name of ${other}; rename one of them` });
      else {
        // One that was stated done in place has the status of another folder.
        if (all || task.status !== 'done') tasks.push(task);
        files.set(getKey(task.name), file);
      }
    }
    for (const file of caches.flatMap((cache) => cache.others())) problems.push({ file, message: NO_FILE });
    return { tasks: tasks.sort((one, other) => (one.name < other.name ? -1 : 1)), problems };
  }

  async function find(name: string): Promise<string> {
    await load(true);
    const file = files.get(getKey(name));
    if (file === undefined) throw new CometError('not_found', `no task ${name}; comet-cc task ls --all lists them`);
    return file;
  }

  return {
    load,
    getFile: (name: string): string | null => files.get(getKey(name)) ?? null,
    add: (stem: string, task: Omit<Task, 'name'>): Promise<Task> =>
      writing(getDir(task.status), async () => {
        await load(true);
        for (let number = 1; ; number += 1) {
          const named = { ...task, name: number === 1 ? stem : `${stem}-${number}` };
          const file = path.join(getDir(task.status), `${named.name}${ENDING}`);
          if (files.has(getKey(named.name)) || !(await createExclusive(file, renderTask(named)))) continue;
          files.set(getKey(named.name), file);
          return named;
        }
      }),
    async update(name: string, patch: TaskPatch, month: string): Promise<Task> {
      const file = await find(name);
      const text = (await decoded(file)) ?? '';
      const before = readTask(file, text, getStatusAt(file)).read;
      if (typeof before === 'string') throw new CometError('node_invalid', `${file}: ${before}`);
      const after = patchTask(text, patch);
      const task = parseTask(after, before.name);
      if (typeof task === 'string') throw new CometError('node_invalid', task);
      const status = patch.status ?? before.status;
      const dir = status === 'done' ? path.join(getDir(status), month) : getDir(status);
      const to = status === getStatusAt(file) ? file : path.join(dir, path.basename(file));
      // A process that is killed between the two steps leaves the task as it was, or as it shall be.
      const isMovedFirst = to !== file && rank(status) < rank(before.status);
      return await writing(path.dirname(to), async () => {
        if (isMovedFirst) await move(file, to);
        if (after !== text) await writeFileAtomic(isMovedFirst ? to : file, after);
        if (to !== file && !isMovedFirst) await move(file, to);
        files.set(getKey(name), to);
        return { ...task, status };
      });
    },
    async remove(name: string): Promise<void> {
      const file = await find(name);
      await writing(path.dirname(file), () => removeDurably(file));
      files.delete(getKey(name));
    },
  };
}

async function textsBelow(tasksDir: string): Promise<readonly TaskText[]> {
  const texts = await Promise.all(
    (await filesBelow(tasksDir, (name) => name.endsWith(ENDING))).map(async (file) => {
      const name = path.relative(tasksDir, file).split(path.sep).join('/');
      return { name, text: (await decodedIfAllowed(file)) ?? '' };
    }),
  );
  const own = texts.filter(({ name, text }) => text !== '' && NAME.test(name) && conflictCopy(name) === null);
  return own.sort((one, other) => (one.name < other.name ? -1 : 1));
}

async function restoreFile({ name, text }: TaskText, dir: string, folder: TaskFolder): Promise<boolean> {
  const file = path.join(dir, ...name.split('/'));
  const stem = path.basename(name, ENDING);
  await folder.load(true);
  if (folder.getFile(stem) !== null || typeof parseTask(text, stem) === 'string') return false;
  return await writing(path.dirname(file), () => createExclusive(file, text));
}

async function replaceFile({ name, text }: TaskText, dir: string, folder: TaskFolder): Promise<void> {
  const file = path.join(dir, ...name.split('/'));
  const stem = path.basename(name, ENDING);
  const task = parseTask(text, stem);
  if (!NAME.test(name) || typeof task === 'string') throw new CometError('node_invalid', `${name}: ${String(task)}`);
  await folder.load(true);
  const before = folder.getFile(stem);
  await writing(path.dirname(file), async () => {
    // A process that is killed between the two leaves the task where it was, or twice, of which the later state counts.
    await writeFileAtomic(file, text);
    if (before !== null && before !== file) await rm(before);
  });
}

/** Replaces no file. @throws CometError `node_invalid` */
async function move(file: string, to: string): Promise<void> {
  if ((await lstat(to).catch(orMissing)) !== null)
    throw new CometError('node_invalid', `${to} exists already; rename one of the two files`);
  await rename(file, to);
  await syncDir(path.dirname(to));
  await syncDir(path.dirname(file));
}

function readTask(file: string, text: string | null, folder: Status): { file: string; read: Task | string } {
  const name = path.basename(file, ENDING);
  const read = conflictCopy(name) ?? parseTask(text, name);
  if (typeof read === 'string' || rank(read.status) >= rank(folder)) return { file, read };
  return { file, read: { ...read, status: folder } };
}

/** @throws CometError `unsafe_file`, as on a full disk; nothing was changed then */
async function writing<T>(dir: string, work: () => Promise<T>): Promise<T> {
  try {
    await ensureDir(dir);
    return await work();
  } catch (error) {
    if (error instanceof CometError) throw error;
    throw new CometError('unsafe_file', `${dir} cannot be written to: ${getReason(error)}`, { cause: error });
  }
}
