import { createMutex, DAY_MS, type Mutex } from '../../common/async.ts';
import { CometError, getOnly, type Problem } from '../../common/errors.ts';
import { localDay, oneLine } from '../../common/text.ts';
import { isCleanOrigin, lowestOrigin, type Origin } from '../../common/turn.ts';
import { escapeHeadings } from '../model/markdown.ts';
import { toSlug } from '../model/page.ts';
import { openNames, type Task, type TaskListing, type TaskPatch, TOPIC, taskId } from '../model/task.ts';
import { isNearTask, makeTask, planTaskChange, type TaskStatement } from './statement.ts';
import { clock, getTaskLine, questionLines, type Surfacing, taskLines, withoutDoubtful } from './surfacing.ts';
import type { TaskFiles, TaskText } from './task-files.ts';
import { createTaskSources, removeTasks } from './task-sources.ts';
import { localIso, nextTime, onceMs, readTrigger, scheduledMs } from './trigger.ts';

/** A task as commands and tools show it. */
export type TaskView = Awaited<ReturnType<ReturnType<typeof createTaskReader>['getView']>>;

/** What a person or a program may say of a task. */
export interface TaskFields {
  readonly title?: string | undefined;
  /** A time or a cron form; '' for none. */
  readonly at?: string | undefined;
  readonly mode?: Task['mode'] | undefined;
  readonly priority?: Task['priority'] | undefined;
  /** '' for none. */
  readonly topic?: string | undefined;
  /** Names or ids of tasks. */
  readonly dependsOn?: readonly string[] | undefined;
}

export interface NewTask extends TaskFields {
  readonly title: string;
  /** More about it. */
  readonly what?: string | undefined;
  /** Lines of context: memories that it is about. */
  readonly context?: readonly string[] | undefined;
  /** Memories that it is made of. */
  readonly sources?: readonly string[] | undefined;
  readonly origin: Origin;
  /** Null for every project; `project` is the key where that is known. */
  readonly projectDir: string | null;
  readonly project?: string | undefined;
}

export type Tasks = ReturnType<typeof createTasks>;

interface Parts {
  readonly files: TaskFiles;
  readonly surfacing: Surfacing;
  readonly now: () => number;
  readonly getProject: (directory: string | null) => string;
  readonly redact: (text: string) => string;
}

const TITLE_CHARS = 300;
/** A time that passed while it was typed is due at once. */
const TYPING_MS = 60_000;

/** Looks tasks up and checks what is said of them. */
function createTaskReader({ files, now, getProject, redact }: Omit<Parts, 'surfacing'>) {
  async function getView(task: Task, open: ReadonlySet<string>) {
    const { surfacing: _, asked: __, scheduled: ___, trigger, fired, topic, ...fields } = task;
    const read = trigger === undefined ? null : await readTrigger(trigger, scheduledMs(task));
    const isOver = read === null || typeof read === 'string' || task.status === 'done';
    const next = isOver ? null : await nextTime(read, now());
    return {
      ...fields,
      /** Six hex digits that stay as long as the name of its file does. */
      id: taskId(task.name),
      trigger: trigger ?? null,
      /** When its trigger comes next; null where it has none, or has passed. */
      next: next === null ? null : localIso(next),
      /** The trigger time that was surfaced last. */
      fired: fired === undefined ? null : localIso(Date.parse(fired)),
      topic: topic ?? null,
      /** Names of those that are not done. */
      waits_for: task.depends_on.filter((name) => open.has(name.toLowerCase())),
      file: files.getFile(task.name) ?? '',
    };
  }

  async function triggerText(at: string): Promise<string | undefined> {
    if (at.trim() === '') return undefined;
    const read = await readTrigger(at, now());
    if (typeof read === 'string') throw new CometError('usage', read);
    if (read.kind === 'cron') return read.form;
    if (read.atMs < now() - TYPING_MS) throw new CometError('usage', `${localIso(read.atMs)} has passed`);
    return localIso(read.atMs);
  }

  const isNear = (project: string, within: string | undefined): boolean =>
    within === undefined || project === '' || project === getProject(within);

  return {
    getView,
    isNear,
    shown: async (task: Task) => getView(task, openNames(await files.load())),
    /** Without those whose trigger cannot be read. */
    load: async (all: boolean): Promise<TaskListing> => withoutDoubtful(await files.load(all), files),
    async find(input: string, within?: string): Promise<Task> {
      const near = (await files.load(true)).tasks.filter(({ project }) => isNear(project, within));
      return resolveTask(input, near);
    },
    /** @param name  of the task, where it exists. @throws CometError `usage`, `not_found`, `ambiguous_id` */
    async getFields({ title, at, mode, priority, topic, dependsOn }: TaskFields, name = '') {
      const { tasks } = dependsOn === undefined || dependsOn.length === 0 ? { tasks: [] } : await files.load(true);
      const names = dependsOn?.map((given) => resolveTask(given, tasks).name);
      if (title !== undefined && oneLine(title) === '') throw new CometError('usage', 'a task needs a title');
      if (topic !== undefined && topic !== '' && !TOPIC.test(topic))
        throw new CometError('usage', `a topic is named by lower-case letters, digits, - and _ (got "${topic}")`);
      if (name !== '' && names !== undefined && isWaitingFor({ name }, names, tasks))
        throw new CometError('usage', `${name} cannot depend on itself, nor on what waits for it`);
      return {
        ...(title === undefined ? {} : { title: oneLine(redact(title)) }),
        ...(at === undefined ? {} : { trigger: await triggerText(at) }),
        ...(mode === undefined ? {} : { mode }),
        ...(priority === undefined ? {} : { priority }),
        ...(topic === undefined ? {} : { topic: topic === '' ? undefined : topic }),
        ...(names === undefined ? {} : { depends_on: names }),
      };
    },
  };
}

export function createTasks(parts: Parts) {
  const { files, surfacing, now, getProject, redact } = parts;
  const { getView, isNear, shown, load, find, getFields } = createTaskReader(parts);
  const exclusive = createMutex();
  const changing: Mutex = (work) => exclusive(work).finally(surfacing.soon);
  const month = (): string => localDay(now()).slice(0, 7);

  const change = (input: string, within: string | undefined, getPatch: (task: Task) => Promise<TaskPatch>) =>
    changing(async () => {
      const task = await find(input, within);
      return shown(await files.update(task.name, await getPatch(task), month()));
    });

  return {
    /** By the time of their trigger. @param filter.all  done ones too */
    async list({ projectDir, all = false }: { projectDir?: string | undefined; all?: boolean | undefined }) {
      const { tasks, problems } = await load(all);
      const near = tasks.filter(({ project }) => isNear(project, projectDir));
      const views = await Promise.all(near.map((task) => getView(task, openNames({ tasks, problems }))));
      return { tasks: views.sort(byDue), problems };
    },
    /** @param within  only tasks of this folder's project. @throws CometError `not_found`, `ambiguous_id` */
    show: async (input: string, within?: string): Promise<TaskView> => shown(await find(input, within)),
    /** @throws CometError `usage` for a time that cannot be read, `unsafe_file` where the folder cannot be written to */
    add: ({ projectDir, project, origin, sources = [], ...given }: NewTask): Promise<TaskView> =>
      changing(async () => {
        const { title = '', trigger, depends_on = [], ...fields } = await getFields(given);
        const atMs = now();
        const task = await files.add(getStem(atMs, title), {
          ...{ title, created: new Date(atMs).toISOString(), status: 'active', priority: 'medium', mode: 'notify' },
          ...{ ...fields, trigger, depends_on, sources: [...sources], origin },
          project: projectDir === null ? '' : (project ?? getProject(projectDir)),
          body: getBody(given, redact),
        });
        return shown(task);
      }),
    /**
     * @param by  who changes it: new words are at most as trusted as that
     * @throws CometError `not_found`, `ambiguous_id`, `usage`, `node_invalid`
     */
    edit: (input: string, fields: TaskFields, { by, within }: { by: Origin; within?: string | undefined }) =>
      change(input, within, async (task) => {
        const isReworded = [fields.title, fields.topic, fields.mode].some((value) => value !== undefined);
        return {
          ...(await getFields(fields, task.name)),
          ...(isReworded ? { origin: lowestOrigin([task.origin, by]) } : {}),
          ...(fields.at === undefined ? {} : { ...UNFIRED, scheduled: new Date(now()).toISOString() }),
        };
      }),
    setStatus: (input: string, status: Task['status'], within?: string): Promise<TaskView> =>
      change(input, within, async () => ({ status, surfacing: undefined, asked: undefined })),
    remove: (input: string): Promise<TaskView> =>
      changing(async () => {
        const view = await shown(await find(input));
        await removeTasks([view.name], parts);
        return view;
      }),
    /** Titles of tasks that surfaced lately and are still open, newest first; synchronous, as of the last look. */
    due: (projectDir?: string): readonly string[] => {
      const near = surfacing.recent().filter(({ project }) => isNear(project, projectDir));
      return near.map(({ title }) => oneLine(title));
    },
    /** Lines for the system block of a session: questions that are due and were given to no other session. */
    questions: (sessionId: string, project: string): Promise<readonly string[]> =>
      exclusive(async () => {
        const given: Task[] = [];
        for (const task of (await load(false)).tasks.filter(isQuestionFor(sessionId, project)).slice(0, QUESTIONS))
          given.push(task.asked === undefined ? await files.update(task.name, { asked: sessionId }, month()) : task);
        return questionLines(given, now());
      }),
    /** The page of a day, today's by default: `2026-11-24`. */
    inbox: async (day = localDay(now())) => ({ day, text: await files.readInbox(day) }),
    ...createTaskSources(parts),
    ...createExchanged(parts, changing),
    ...createStatements(parts, changing),
    ...createListings(parts, load),
    problems: surfacing.problems,
    close: surfacing.close,
  };
}

function createListings({ files }: Parts, load: (all: boolean) => Promise<TaskListing>) {
  return {
    /** See `taskLines`; with the number of open tasks. */
    briefLines: async (since: { readonly sinceMs: number; readonly nowMs: number }) =>
      taskLines(await load(false), since),
    /** Active ones of every project. */
    active: async (): Promise<readonly Task[]> => (await load(false)).tasks.filter(({ status }) => status === 'active'),
    lint: async (): Promise<readonly TaskProblem[]> => lintTasks(await load(true), files.getFile),
  };
}

function createStatements({ files, now, redact }: Parts, changing: Mutex) {
  async function addTask({ taskId: _, ...statement }: TaskStatement): Promise<void> {
    const { text, atMs, project } = statement;
    const made = await makeTask(statement);
    const { created, trigger, title } = made;
    // Memory read this session late.
    if (trigger !== undefined && onceMs(trigger) < now() - DAY_MS) return;
    const isPast = ({ status, created: at }: Task): boolean => status === 'done' && atMs - Date.parse(at) > DAY_MS;
    const own = (await files.load(true)).tasks.filter((task) => task.project === project && !isPast(task));
    // A model may word what rules have read in the same turn otherwise.
    const isSame = (task: Task): boolean =>
      task.created === created && task.trigger === trigger && [text, title].some((each) => isNearTask(task, each));
    if (own.some((task) => task.title === text || task.statement === text || isSame(task))) return;
    await files.add(getStem(atMs, title), made);
  }

  async function changeTask(statement: TaskStatement): Promise<void> {
    const task = (await files.load()).tasks.find(({ name, project }) => {
      return taskId(name) === statement.taskId && [statement.project, ''].includes(project);
    });
    const patch = task === undefined ? null : await planTaskChange(task, statement);
    if (task === undefined || patch === null) return;
    const day = localDay(now());
    await files.update(task.name, patch, day.slice(0, 7));
    const change = patch.status === 'done' ? 'is done' : patch.trigger && `is due at ${patch.trigger}`;
    if (change) await files.addToInbox(day, `- ${clock(now())} ${getTaskLine(task)} ${change}, as you said`);
  }

  return {
    /**
     * Adds a task, unless the project already has it, open, or done and said within a day; or changes the open one that
     * the statement names, with a line in the inbox where that is more than context.
     */
    takeStatement: ({ text, ...statement }: TaskStatement): Promise<void> =>
      changing(() => {
        const said = { ...statement, text: oneLine(redact(text)).slice(0, TITLE_CHARS) };
        return statement.taskId === null ? addTask(said) : changeTask(said);
      }),
  };
}

/** What another machine says of a task. */
function createExchanged({ files }: Parts, changing: Mutex) {
  return {
    /** It changed there. */
    receive: (file: TaskText): Promise<void> => changing(() => files.replace(file)),
    /** It was removed there. */
    drop: (name: string): Promise<void> =>
      changing(async () => {
        await files.load(true);
        if (files.getFile(name) !== null) await files.remove(name);
      }),
  };
}

/** A trigger that was set again has surfaced nothing. */
const UNFIRED = { fired: undefined, surfacing: undefined, asked: undefined };

/** Only the words of the user and of Claude may stand in a system block. */
function isQuestionFor(sessionId: string, project: string): (task: Task) => boolean {
  return ({ mode, status, fired, origin, asked = sessionId, project: own }) =>
    mode === 'question' &&
    status === 'active' &&
    fired !== undefined &&
    isCleanOrigin(origin) &&
    asked === sessionId &&
    [project, ''].includes(own);
}

function getBody({ what = '', context = [] }: Pick<NewTask, 'what' | 'context'>, redact: Parts['redact']): string {
  const text = redact(what).trim();
  return [
    text === '' ? '' : `\n## What\n\n${escapeHeadings(text)}\n`,
    context.length === 0 ? '' : `\n## Context\n\n${context.map((line) => `- ${redact(line)}\n`).join('')}`,
  ].join('');
}

/** Questions that one session is asked at most; the next session gets the rest. */
const QUESTIONS = 3;

function resolveTask(input: string, tasks: readonly Task[]): Task {
  // A file system may give names in another form than the one that is typed.
  const getKeys = (name: string): string[] => [name.normalize('NFC').toLowerCase(), taskId(name)];
  const [prefix = ''] = getKeys(input.trim());
  const exact = tasks.find(({ name }) => getKeys(name).includes(prefix));
  return getOnly(
    exact ? [exact] : tasks.filter(({ name }) => prefix !== '' && getKeys(name).some((key) => key.startsWith(prefix))),
    `no task ${input}; comet-cc task ls --all lists them`,
    `${input} fits several tasks; give all of the id`,
  );
}

/** Name of a new task file, without extension. */
function getStem(atMs: number, title: string): string {
  return toSlug(`${localDay(atMs)}-${/[\p{L}\p{N}]/u.test(title) ? title : 'task'}`);
}

/** What surfaced, then by the next time; without a trigger last. */
function byDue(one: TaskView, other: TaskView): number {
  const getTime = ({ status, next, fired }: TaskView): number =>
    status === 'done' ? Number.MAX_VALUE : Date.parse(next ?? fired ?? '9999-01-01');
  return getTime(one) - getTime(other) || (one.name < other.name ? -1 : 1);
}

/** A problem of one task, under its name. */
export interface TaskProblem extends Problem {
  readonly kind: 'dead_link' | 'contradiction' | 'unreadable';
}

/** Files that cannot be used, dependencies that are no task, and tasks that wait for themselves. @param listing  of all */
function lintTasks({ tasks, problems }: TaskListing, getFile: (name: string) => string | null): TaskProblem[] {
  const byName = new Map(
    tasks.flatMap((task) => [[task.name.toLowerCase(), task] as const, [taskId(task.name), task]]),
  );
  const open = tasks.filter(({ status }) => status !== 'done');
  const unread = new Set(problems.map(({ file }) => file.replace(/^.*[\\/]|\.md$/g, '').toLowerCase()));
  return [
    ...problems.map((problem): TaskProblem => ({ ...problem, kind: 'unreadable' })),
    ...open.flatMap((task): TaskProblem[] => {
      const file = getFile(task.name) ?? task.name;
      const lost = task.depends_on
        .map((name) => name.toLowerCase())
        .filter((name) => !byName.has(name) && !unread.has(name));
      const missing = lost.map((name): TaskProblem => {
        return { file, kind: 'dead_link', message: `depends on ${name}, which is no task` };
      });
      if (!isWaitingFor(task, task.depends_on, tasks)) return missing;
      return [...missing, { file, kind: 'contradiction', message: 'waits for itself: see depends_on' }];
    }),
  ];
}

/** Whether one of these tasks, by name or id, is `task`, or depends on it directly or through others. */
function isWaitingFor(task: Pick<Task, 'name'>, names: readonly string[], tasks: readonly Task[]): boolean {
  const waited = new Set(names);
  for (const each of waited) {
    const found = tasks.find(({ name, status }) => [name, taskId(name)].includes(each) && status !== 'done');
    for (const next of found === undefined ? [] : [found.name, ...found.depends_on]) waited.add(next);
  }
  return waited.has(task.name);
}
