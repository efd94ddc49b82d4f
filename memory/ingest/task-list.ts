import { z } from 'zod';
import { memoize } from '../../common/map.ts';
import { neutralLine, parseJson, toText } from '../../common/text.ts';
import { isCleanOrigin, type Origin } from '../../common/turn.ts';
import type { JournalTurn, TurnPart, TurnText } from '../model/turn.ts';
import { repeatedOrigin } from '../text/repetition.ts';

export type TaskStatus = 'pending' | 'in_progress' | 'completed' | 'deleted';

/** An item of Claude Code's to-do list. */
export interface Task {
  readonly text: string;
  readonly status: TaskStatus;
  readonly origin: Origin;
  /** Id of the turn that changed it last. */
  readonly turn: string;
}

/** Effect of one tool call. `list` replaces the previous list; tasks with an id are kept separately. */
export type TaskChange =
  | { readonly kind: 'list'; readonly tasks: readonly Task[] }
  | { readonly kind: 'add'; readonly id: string; readonly task: Task }
  | ({ readonly kind: 'update'; readonly id: string } & Pick<Task, 'origin' | 'turn'> & Partial<Task>);

const LISTED = 50;
const TASK_CHARS = 160;
/** `Task #3 created successfully: …` */
const GIVEN_ID = /#(\w{1,20})/;
const REFUSED = /^\s*(?:<tool_use_error>|error\b)/i;

const Line = z.string().transform((text) => neutralLine(text, TASK_CHARS));
const Status = z.enum(['pending', 'in_progress', 'completed', 'deleted']);
const INPUTS = {
  TodoWrite: z.looseObject({ todos: z.array(z.looseObject({ content: Line, status: Status })) }),
  TaskCreate: z.looseObject({ subject: Line }),
  TaskUpdate: z.looseObject({ taskId: z.string(), subject: Line.optional(), status: Status.optional() }),
};

/** Refused and unanswered calls have no effect. */
export function taskChanges(turn: TurnText): TaskChange[] {
  const calls = turn.parts.filter(({ tool }) => tool in INPUTS);
  const results = calls.filter(({ kind }) => kind === 'tool_result');
  return calls.filter(({ kind }) => kind === 'tool_use').flatMap((call) => getChange(call, turn, results) ?? []);
}

/** Tasks with an id keep the order of their creation. */
export function listTasksAfter(changes: readonly TaskChange[]): Task[] {
  let list: readonly Task[] = [];
  const numbered = new Map<string, Task>();
  const saidClean = new Set<string>();
  // A list rewritten after external text arrived does not make the assistant's earlier tasks external.
  const settled = (task: Task): Task => {
    if (isCleanOrigin(task.origin)) saidClean.add(task.text);
    return saidClean.has(task.text) ? { ...task, origin: 'assistant' } : task;
  };
  for (const change of changes) {
    if (change.kind === 'list') list = change.tasks.map(settled);
    else if (change.kind === 'add') numbered.set(change.id, settled(change.task));
    else {
      const task = numbered.get(change.id);
      if (task === undefined) continue;
      const { text = task.text, status = task.status } = change;
      const origin = text === task.text ? task.origin : change.origin;
      numbered.set(change.id, settled({ text, status, origin, turn: change.turn }));
    }
  }
  return [...list, ...numbered.values()].filter(({ text }) => text !== '');
}

/** Removes the matching result from `results`. */
function getChange({ tool, text: json, origin }: TurnPart, turn: TurnText, results: TurnPart[]): TaskChange | null {
  const getTask = (text: string, status: TaskStatus): Task => {
    return { text, status, origin: repeatedOrigin(text, [turn], origin), turn: turn.turnId };
  };
  // Redaction may have broken the JSON.
  const input = parseJson(json);
  if (tool === 'TodoWrite') {
    const read = INPUTS.TodoWrite.safeParse(input);
    if (answerTo(tool, '', results) === null || !read.success) return null;
    const tasks = read.data.todos.slice(0, LISTED).map(({ content, status }) => getTask(content, status));
    return { kind: 'list', tasks };
  }
  if (tool === 'TaskCreate') {
    const read = INPUTS.TaskCreate.safeParse(input);
    const subject = (input as { subject?: unknown } | undefined)?.subject;
    const id = GIVEN_ID.exec(answerTo(tool, toText(subject), results) ?? '')?.[1];
    if (id === undefined || !read.success) return null;
    return { kind: 'add', id, task: getTask(read.data.subject, 'pending') };
  }
  const read = INPUTS.TaskUpdate.safeParse(input);
  const answer = answerTo(tool, read.success ? `#${read.data.taskId} ` : '', results);
  if (answer === null || !read.success) return null;
  const { taskId, subject, status } = read.data;
  return {
    kind: 'update',
    id: taskId,
    origin: getTask(subject ?? '', 'pending').origin,
    turn: turn.turnId,
    ...(subject === undefined ? {} : { text: subject }),
    ...(status === undefined ? {} : { status }),
  };
}

/** Parallel calls may be answered in another order: prefer the answer that names the task, else the first. */
function answerTo(tool: string, named: string, results: TurnPart[]): string | null {
  const naming = results.findIndex((result) => result.tool === tool && result.text.includes(named));
  const at = naming < 0 ? results.findIndex((result) => result.tool === tool) : naming;
  const [answer] = at < 0 ? [] : results.splice(at, 1);
  return answer === undefined || REFUSED.test(answer.text) ? null : answer.text;
}

export interface TaskList {
  readonly sessionId: string;
  readonly project: string;
  readonly lastAtMs: number;
  readonly tasks: readonly Task[];
}

interface Change {
  readonly turnId: string;
  readonly atMs: number;
  readonly changes: readonly TaskChange[];
}

/** List changes kept per session, newest first to stay. */
const MAX_TURNS = 200;

export function createTaskLists() {
  const sessions = new Map<string, readonly Change[]>();
  /** `lists` runs while a prompt waits, and few sessions change in between. */
  const getTasks = memoize((turns: readonly Change[]) => listTasksAfter(turns.flatMap(({ changes }) => changes)));

  return {
    record({ turnId, sessionId, atMs }: Pick<JournalTurn, 'turnId' | 'sessionId' | 'atMs'>, text: TurnText): void {
      const changes = taskChanges(text);
      if (changes.length === 0) return;
      // On startup, parts arrive before older whole turns.
      const history = [...(sessions.get(sessionId) ?? []), { turnId, atMs, changes }];
      sessions.set(sessionId, history.toSorted((one, other) => one.atMs - other.atMs).slice(-MAX_TURNS));
    },
    drop(turnIds: readonly string[]): void {
      const removedIds = new Set(turnIds);
      for (const [id, turns] of sessions) {
        const left = turns.filter((turn) => !removedIds.has(turn.turnId));
        if (left.length === 0) sessions.delete(id);
        else if (left.length < turns.length) sessions.set(id, left);
      }
    },
    lists: (): ReadonlyMap<string, readonly Task[]> =>
      new Map([...sessions].map(([id, turns]) => [id, getTasks(turns)] as const)),
  };
}
