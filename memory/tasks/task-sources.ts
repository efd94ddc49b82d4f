import { isDeepStrictEqual } from 'node:util';
import { localDay } from '../../common/text.ts';
import { type Task, taskId } from '../model/task.ts';
import { makeTask, withoutContextOf } from './statement.ts';
import type { TaskFiles } from './task-files.ts';

/** What is removed for good. */
export interface TaskSources {
  /** Ids of memories. */
  readonly nodes: ReadonlySet<string>;
  readonly calls: readonly { readonly tool: string; readonly text: string }[];
}

type Parts = { readonly files: TaskFiles; readonly now: () => number };

/** A call that adds or changes a task: an MCP tool, a command, or a change of the file itself. */
const TASK_TOOL = /(?:^|__)(?:add|update)_task$/;
const TASK_COMMAND = /\btask (?:add|edit)\b/;
const NODE_ID = /mem_\d{8}_\d{6}_[0-9a-f]{6}/g;

/** Tasks, done ones too, that were made of what is removed. A link that a person wrote into a task makes it none. */
export function createTaskSources({ files, now }: Parts) {
  async function findDerived(sources: TaskSources): Promise<readonly Task[]> {
    const { tasks, takenBack = [] } = await files.load(true);
    return [...tasks, ...takenBack].filter((task) => isMadeOf(task, sources));
  }
  return {
    texts: files.texts,
    restore: files.restore,
    findDerived,
    /** Removes them, and lines of the inbox that name them or a memory that is removed. */
    async forget(sources: TaskSources): Promise<void> {
      const removedNames = (await findDerived(sources)).map(({ name }) => name);
      await removeTasks(removedNames, { files, now }, sources.nodes);
      const marks = removedNames.map((name) => `task ${taskId(name)})`);
      await files.cleanInbox((line) => {
        const nodes = line.match(NODE_ID) ?? [];
        return marks.some((mark) => line.includes(mark)) || nodes.some((id) => sources.nodes.has(id));
      });
    },
  };
}

/** Without tasks as memory made them whose sentence was said in turns that the user went back behind. */
export function withoutTakenBack(files: TaskFiles, isTakenBack: (nodeId: string, text: string) => boolean): TaskFiles {
  async function isLeft(task: Task): Promise<boolean> {
    const { title, statement: text = title, created, sources, scheduled, topic } = task;
    const [nodeId = ''] = sources;
    if ((scheduled ?? topic) !== undefined || !isTakenBack(nodeId, text)) return false;
    const made = await makeTask({ ...task, text, atMs: Date.parse(created), nodeId });
    return Object.entries(made).every(([key, value]) => isDeepStrictEqual(task[key as keyof Task], value));
  }
  return {
    ...files,
    async load(all) {
      const { tasks, problems } = await files.load(all);
      const left = await Promise.all(tasks.map(isLeft));
      return { problems, tasks: tasks.filter((_, at) => !left[at]), takenBack: tasks.filter((_, at) => left[at]) };
    },
  };
}

/** Removes tasks, and what others say of them and of `nodes`: that they depend on them, and lines of context. */
export async function removeTasks(
  names: readonly string[],
  { files, now }: Parts,
  nodes: TaskSources['nodes'] = new Set(),
): Promise<void> {
  for (const name of names) await files.remove(name);
  const gone = new Set(names.flatMap((name) => [name.toLowerCase(), taskId(name)]));
  for (const { name, depends_on, body } of (await files.load(true)).tasks) {
    const rest = depends_on.filter((each) => !gone.has(each.toLowerCase()));
    const isFreed = rest.length < depends_on.length;
    if (!isFreed && withoutContextOf(body, nodes) === body) continue;
    const editBody = (text: string): string => withoutContextOf(text, nodes);
    await files.update(name, { ...(isFreed ? { depends_on: rest } : {}), editBody }, localDay(now()).slice(0, 7));
  }
}

function isMadeOf({ name, title, sources, origin }: Task, { nodes, calls }: TaskSources): boolean {
  if (sources.length > 0 && sources.every((id) => nodes.has(id))) return true;
  return calls.some(({ tool, text }) => {
    if (text.includes(`${name}.md`)) return true;
    const isNoted = origin !== 'user' && (TASK_TOOL.test(tool) || TASK_COMMAND.test(text));
    return isNoted && getWords(text).includes(getWords(title));
  });
}

/** Without the quotes and escapes of JSON and shells, each word between spaces. */
const getWords = (text: string): string => ` ${text.replace(/[\s"'\\]+/g, ' ').trim()} `;
