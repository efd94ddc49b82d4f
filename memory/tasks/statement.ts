import { localDay } from '../../common/text.ts';
import { isCleanOrigin, type Origin } from '../../common/turn.ts';
import type { MemoryNode } from '../model/node.ts';
import type { Task, TaskPatch } from '../model/task.ts';
import type { TurnText } from '../model/turn.ts';
import { isNearDuplicate } from '../text/paraphrase.ts';
import { reportsDone } from '../text/validity.ts';
import { isReminder, onceMs, readReminder } from './trigger.ts';

/** A sentence that makes a task, or says more of an open one. */
export interface TaskStatement {
  readonly text: string;
  readonly origin: Origin;
  /** When it was said. */
  readonly atMs: number;
  readonly project: string;
  readonly nodeId: string;
  readonly taskId: string | null;
}

const BUCKET = /^task(?::([\da-f]{6}))?$/;
/** Lines of context that memory adds to one task. */
const MOST_LINES = 20;
const CONTEXT = /^## Context[ \t]*\r?\n/m;
const NOTED_LINE = /^- \d{4}-\d\d-\d\d: .{1,400} \((mem_\d{8}_\d{6}_[0-9a-f]{6})\)\r?\n?$/;

/** New tasks are of what the user typed alone; of open ones the assistant may say more, too. */
export function findTaskStatements(nodes: readonly MemoryNode[], turns: readonly TurnText[]): TaskStatement[] {
  return nodes.flatMap((node) => {
    const { node_id: nodeId, project, open = [], decisions = [], facts } = node;
    const reminders = open.map((item) => (isReminder(item.text) ? { ...item, bucket: item.bucket ?? 'task' } : item));
    const told = facts.map(({ value, evidence, origin = node.origin, bucket }) => {
      return { text: value, turn: evidence[0] ?? '', origin, bucket };
    });
    return [...reminders, ...decisions, ...told].flatMap(({ text, turn, origin, bucket = '' }): TaskStatement[] => {
      const [fits, taskId = null] = BUCKET.exec(bucket) ?? [];
      const { atMs } = turns.find(({ turnId }) => turnId === turn) ?? {};
      const isAllowed = taskId === null ? origin === 'user' : isCleanOrigin(origin);
      if (fits === undefined || atMs === undefined || !isAllowed) return [];
      return [{ text, origin, atMs, project, nodeId, taskId }];
    });
  });
}

/**
 * What a statement changes in an open task: a line of its context, and, in the user's own words, its time or that it is
 * done.
 * @returns null where it says nothing new
 */
export async function planTaskChange(task: Task, statement: TaskStatement): Promise<TaskPatch | null> {
  const { text, origin, atMs, nodeId } = statement;
  const line = `- ${localDay(atMs)}: ${text} (${nodeId})\n`;
  const noted = task.body.split(/(?<=\n)/).filter((each) => NOTED_LINE.test(each));
  const isNew = !isNearTask(task, text) && !task.body.includes(text) && noted.length < MOST_LINES;
  const fields = origin === 'user' ? await readFields(task, text, atMs) : {};
  if (!isNew && Object.keys(fields).length === 0) return null;
  return { ...fields, ...(isNew ? { editBody: (body: string) => withContextLine(body, line) } : {}) };
}

/** The file that a sentence makes. */
export async function makeTask(given: Omit<TaskStatement, 'taskId'>): Promise<Omit<Task, 'name'>> {
  const { text, origin, atMs, project, nodeId } = given;
  const { trigger, title } = await readReminder(text, atMs);
  return {
    ...{ title, created: new Date(atMs).toISOString(), status: 'active', priority: 'medium', mode: 'notify', trigger },
    ...{ depends_on: [], origin, sources: [nodeId], statement: title === text ? undefined : text, project },
    body: `\n## Context\n\n- ${nodeId}\n`,
  };
}

export function isNearTask({ title, statement = '' }: Task, text: string): boolean {
  return isNearDuplicate(title, text) || isNearDuplicate(statement, text);
}

async function readFields({ trigger }: Task, text: string, atMs: number): Promise<TaskPatch> {
  if (reportsDone(text)) return { status: 'done', surfacing: undefined, asked: undefined };
  const { trigger: found } = await readReminder(text, atMs);
  if (found === undefined || found === trigger || onceMs(found) <= atMs) return {};
  return {
    ...{ trigger: found, scheduled: new Date(atMs).toISOString() },
    ...{ fired: undefined, surfacing: undefined, asked: undefined },
  };
}

function withContextLine(body: string, line: string): string {
  const found = CONTEXT.exec(body);
  if (found === null) return `${body.trimEnd()}\n\n## Context\n\n${line}`;
  const start = found.index + found[0].length;
  const length = body.slice(start).search(/^#{1,6} /m);
  const section = length < 0 ? body.slice(start) : body.slice(start, start + length);
  const rest = length < 0 ? '' : `\n${body.slice(start + length)}`;
  return `${body.slice(0, start)}${section.trimEnd()}\n${line}${rest}`;
}

/** Without the lines of context that memory added for these memories; a person's lines stay. */
export function withoutContextOf(body: string, nodes: ReadonlySet<string>): string {
  const lines = body.split(/(?<=\n)/);
  return lines.filter((line) => !nodes.has(NOTED_LINE.exec(line)?.[1] ?? '')).join('');
}
