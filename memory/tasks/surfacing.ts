import { isDeepStrictEqual } from 'node:util';
import { createMutex, DAY_MS } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import type { Problem } from '../../common/errors.ts';
import type { Log } from '../../common/log.ts';
import { localDay, localTime, neutralLine } from '../../common/text.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import { openNames, type Task, type TaskListing, taskId } from '../model/task.ts';
import { type Activity, judge, type Verdict } from './judge.ts';
import type { TaskFiles } from './task-files.ts';
import { dueTime, getUrgency, localIso, nextTime, readTrigger, scheduledMs, triggerProblem } from './trigger.ts';

const LATE_MS = 5 * 60_000;
/** A task that surfaced stays in the status line for so long. */
const RECENT_MS = 12 * 3_600_000;
/** Due tasks are looked for so often; files that did not change are not read again. */
const EVERY_MS = 20_000;
const TITLE_CHARS = 200;
const RESULT_CHARS = 4_000;

interface Parts {
  readonly files: TaskFiles;
  readonly now: () => number;
  readonly rule: Config['tasks'];
  readonly activity: () => Activity;
  /** Shows a desktop notification where there is a desktop; never rejects. */
  readonly notify: (text: string) => Promise<unknown>;
  /** Asks the model once about a task and the page of its topic; null where no model may be asked. */
  readonly review: ((task: Task, topic: string, signal: AbortSignal) => Promise<string>) | null;
  /** Asks the model whether a due task interrupts a busy user; null where it may not be asked. */
  readonly interrupts: ((task: Task, activity: Activity, signal: AbortSignal) => Promise<boolean | null>) | null;
  readonly log: Log;
}

export type Surfacing = ReturnType<typeof createSurfacing>;

/** Brings due tasks to the user. */
export function createSurfacing(parts: Parts) {
  const { files, now, rule, activity, notify, review, log } = parts;
  const exclusive = createMutex();
  const closing = new AbortController();
  const running = new Set<Promise<unknown>>();
  let timer: NodeJS.Timeout | null = null;
  let open: readonly Task[] = [];
  let problems: readonly Problem[] = [];
  const listener = createTaskListener();

  function runLater(work: Promise<unknown>, failure: string): void {
    const run: Promise<unknown> = work
      .catch((error: unknown) => log.warn(failure, { error }))
      .finally(() => running.delete(run));
    running.add(run);
  }

  /**
   * The task says that it is surfacing, then the inbox has its line, then the task says that it has surfaced. A process
   * that is killed in between starts again, and finds the line.
   */
  async function surface(task: Task, forMs: number): Promise<void> {
    const begun = task.surfacing === undefined ? Number.NaN : Date.parse(task.surfacing);
    const atMs = begun >= forMs ? begun : now();
    const month = localDay(atMs).slice(0, 7);
    const hour = new Date(now()).getHours();
    const limits = { quietHours: rule.quietHours, acts: rule.act === 'on' && review !== null };
    const verdict = judge({ task, hour, nowMs: now(), activity: activity(), ...limits });
    if (atMs !== begun) await files.update(task.name, { surfacing: new Date(atMs).toISOString() }, month);
    await files.addToInbox(localDay(atMs), inboxLine(task, { mode: verdict.mode, forMs, atMs }));
    const fired = localIso(forMs);
    const done = await files.update(task.name, { surfacing: undefined, fired, asked: undefined }, month);
    open = open.map((each) => (each.name === task.name ? done : each));
    log.info('a task is due', { task: taskId(task.name), ...verdict });
    runLater(notifyAs(task, verdict), 'no desktop notification was shown');
    if (verdict.mode === 'review' && review !== null) runLater(reviewed(task, review), 'a review failed');
  }

  /** The model decides where the rules are in doubt, unless it may not be asked or fails. */
  async function notifyAs(task: Task, { interrupt, isDoubtful }: Verdict): Promise<void> {
    const asked = isDoubtful ? parts.interrupts?.(task, activity(), closing.signal) : undefined;
    const answer = await asked?.catch((error: unknown) => {
      log.info('rules decide whether a task interrupts', { task: taskId(task.name), error });
      return null;
    });
    if (answer ?? interrupt) await notify(getTaskLine(task));
  }

  async function reviewed(task: Task, ask: NonNullable<Parts['review']>): Promise<void> {
    const topic = task.topic === undefined ? '' : await files.readTopic(task.topic);
    const answer = await ask(task, topic, closing.signal);
    const line = `- ${clock(now())} Review of ${getTaskLine(task)}: ${neutralLine(answer, RESULT_CHARS)}`;
    await files.addToInbox(localDay(now()), line);
  }

  const look = (): Promise<void> =>
    exclusive(async () => {
      if (closing.signal.aborted) return;
      const due = await readDue(files, now());
      ({ open, problems } = due);
      runLater(listener.compare(open), 'the index does not list the tasks as they are');
      for (const { task, forMs } of due.due) {
        if (closing.signal.aborted) return;
        await surface(task, forMs).catch((error: unknown) => {
          problems = [...problems, { file: files.getFile(task.name) ?? task.name, message: (error as Error).message }];
          log.warn('a due task could not be surfaced; it is tried again', { task: taskId(task.name), error });
        });
      }
    });
  const lookLater = (): void => runLater(look(), 'tasks could not be read');

  return {
    /** Surfaces what is due. */
    look,
    /** The same, without waiting for it. */
    soon: lookLater,
    /** Looks now and then from now on. @param changed  called when open tasks are others than at the last look */
    start(changed: () => Promise<void>): void {
      listener.listen(changed);
      lookLater();
      timer = setInterval(lookLater, EVERY_MS).unref();
    },
    /** Open tasks that surfaced lately, newest first. */
    recent(): readonly Task[] {
      const since = now() - RECENT_MS;
      const recent = open.filter(({ fired, status }) => status === 'active' && Date.parse(fired ?? '') > since);
      return recent.sort((one, other) => Date.parse(other.fired ?? '') - Date.parse(one.fired ?? ''));
    },
    /** Of the last look: files that are skipped, and why. */
    problems: (): readonly Problem[] => problems,
    async close(): Promise<void> {
      if (timer !== null) clearInterval(timer);
      closing.abort(new Error('memory is closing'));
      while (running.size > 0) await Promise.all(running);
    },
  };
}

/** Calls `changed` when the tasks are others than before, or the last call failed. */
function createTaskListener() {
  let lastTasks: readonly Task[] | null = [];
  let onChange = async (): Promise<void> => {};
  return {
    listen(changed: () => Promise<void>): void {
      onChange = changed;
    },
    async compare(open: readonly Task[]): Promise<void> {
      if (isDeepStrictEqual(open, lastTasks)) return;
      lastTasks = open;
      await onChange().catch((error: unknown) => {
        lastTasks = null;
        throw error;
      });
    },
  };
}

/** Without those whose trigger cannot be read. */
export async function withoutDoubtful({ tasks, problems }: TaskListing, files: TaskFiles): Promise<TaskListing> {
  const doubts = await Promise.all(tasks.map(triggerProblem));
  const doubtful = tasks.flatMap(({ name }, at) =>
    doubts[at] === null ? [] : [{ file: files.getFile(name) ?? name, message: `trigger: ${doubts[at]}` }],
  );
  return { tasks: tasks.filter((_, at) => doubts[at] === null), problems: [...problems, ...doubtful] };
}

/** Active, and waiting for no other. */
function isReady(waiting: ReadonlySet<string>): (task: Task) => boolean {
  return ({ status, depends_on }) => status === 'active' && !depends_on.some((name) => waiting.has(name.toLowerCase()));
}

/** Open tasks, files that are skipped, and what is due now, each for the latest time that its trigger was missed. */
async function readDue(files: TaskFiles, nowMs: number) {
  const read = await files.load();
  const { tasks: open, problems } = await withoutDoubtful(read, files);
  const ready = open.filter(isReady(openNames(read)));
  const times = await Promise.all(ready.map((task) => getDueTime(task, nowMs)));
  const due = ready.flatMap((task, at) => (times[at] === null ? [] : [{ task, forMs: times[at] as number }]));
  return { open, problems, due };
}

async function getDueTime(task: Task, nowMs: number): Promise<number | null> {
  const { trigger, fired } = task;
  const sinceMs = scheduledMs(task);
  const read = trigger === undefined ? null : await readTrigger(trigger, sinceMs);
  if (read === null || typeof read === 'string') return null;
  // It surfaced on a machine in another time zone, or before a journey.
  if (read.kind === 'time' && fired?.slice(0, 19) === localIso(read.atMs).slice(0, 19)) return null;
  return await dueTime(read, { sinceMs, firedMs: fired === undefined ? null : Date.parse(fired), nowMs });
}

/** A title with the id that `comet-cc task` takes. */
export function getTaskLine({ name, title, origin }: Task): string {
  const noted = isCleanOrigin(origin) ? '' : 'noted by a tool; ';
  return `“${neutralLine(title, TITLE_CHARS)}” (${noted}task ${taskId(name)})`;
}

const NEGLECTED_MS = { due: 3 * DAY_MS, untimed: 14 * DAY_MS } as const;

/**
 * Open tasks for a brief, the most important first: due since the last brief or within a day, and neglected ones.
 * @param sinceMs  time of the last brief
 */
export async function taskLines(listing: TaskListing, { sinceMs, nowMs }: { sinceMs: number; nowMs: number }) {
  const { tasks } = listing;
  const lines: Record<'due' | 'neglected', string[]> = { due: [], neglected: [] };
  const add = (kind: keyof typeof lines, task: Task, how: string): void => {
    lines[kind].push(`${getTaskLine(task)}, ${how}`);
  };
  const ready = tasks.filter(isReady(openNames(listing)));
  for (const task of ready.toSorted((one, other) => getUrgency(other) - getUrgency(one))) {
    const read = task.trigger === undefined ? null : await readTrigger(task.trigger, scheduledMs(task));
    if (typeof read === 'string') continue;
    if (read === null) {
      const createdMs = scheduledMs({ created: task.created });
      if (nowMs - createdMs > NEGLECTED_MS.untimed) add('neglected', task, `open since ${localDay(createdMs)}`);
      continue;
    }
    const dueMs = (await getDueTime(task, nowMs)) ?? Date.parse(task.fired ?? '');
    const next = await nextTime(read, nowMs);
    const isDue = read.kind === 'time' ? !Number.isNaN(dueMs) : dueMs > sinceMs;
    if (isDue && read.kind === 'time' && nowMs - dueMs > NEGLECTED_MS.due)
      add('neglected', task, `due since ${localTime(dueMs, nowMs)}`);
    else if (isDue) add('due', task, `due since ${localTime(dueMs, nowMs)}`);
    else if (next !== null && next - nowMs < DAY_MS) add('due', task, `due ${localTime(next, nowMs)}`);
  }
  return { open: tasks.length, ...lines };
}

export const clock = (atMs: number): string => localTime(atMs, atMs);

const LEADS = { notify: '', question: 'Question for the next session: ', review: 'In review: ' } as const;

function inboxLine(task: Task, { mode, forMs, atMs }: { mode: Task['mode']; forMs: number; atMs: number }): string {
  const late = atMs - forMs > LATE_MS ? `, late: was due ${localTime(forMs, atMs)}` : '';
  return `- ${clock(atMs)} ${LEADS[mode]}${getTaskLine(task)}${late}`;
}

/** What the system block says of due questions; every task is of clean origin. */
export function questionLines(tasks: readonly Task[], nowMs: number): string[] {
  const lines = tasks.map(({ name, title, origin, fired = '' }) => {
    const whose = origin === 'user' ? 'A task of the user' : 'A task that Claude noted';
    const id = taskId(name);
    const since = localTime(Date.parse(fired), nowMs);
    return `- ${whose}, due ${since}: “${neutralLine(title, TITLE_CHARS)}” (when it is done: \`comet-cc task done ${id}\`)`;
  });
  return lines.length === 0 ? [] : ['## Ask the user about these due tasks at the next natural point', ...lines];
}
