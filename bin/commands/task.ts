import { type Command, Option } from 'commander';
import { CometError } from '../../common/errors.ts';
import { resolveDirectory } from '../../common/paths.ts';
import { localTime, oneLine, printable } from '../../common/text.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import type { OperationInput } from '../../engine/api/index.ts';
import type { TaskView } from '../../memory/index.ts';
import { TASK_MODES, TASK_PRIORITIES } from '../../memory/recall/index.ts';
import { addCommand, type CommandFlags, type Context, printOrigin } from '../context.ts';
import { inboxLine, isDay } from '../terminal/format.ts';
import { table } from '../terminal/table.ts';
import { confirmed, type Look } from '../terminal/term.ts';
import { rowIds, saveRows } from './memory/ids.ts';
import { projectName } from './memory/list.ts';

type Fields = OperationInput<'tasks/edit'>['fields'];
type Flags = CommandFlags<'all' | 'done', 'project' | 'from' | 'what' | 'title' | 'at' | 'topic'> &
  Pick<Fields, 'mode' | 'priority'> & { readonly dependsOn?: string[] };

const TASK = 'its id, an unambiguous prefix, or a row number of the last list';

export function registerTask(program: Command, context: Context): void {
  const examples = 'comet-cc task add "Check dispenser 47" --at "tomorrow 9:00" --mode question\ncomet-cc task ls';
  const task = addCommand(program, 'task', 'tasks with a time, as markdown files', examples);
  registerAdd(task, context);
  registerList(task, context);
  addCommand(task, 'show', 'one task in full', 'comet-cc task show 2')
    .argument('<id>', TASK)
    .jsonAction('document', async (input: string, flags: Flags) => {
      const [id = ''] = await rowIds(context, 'task', [input]);
      const shown = await context.engine.call('tasks/show', { id });
      context.term.print(flags, shown, () => detailLines(shown));
      if (!flags.json) await printOrigin(context, [shown]);
    });
  registerEdit(task, context);
  for (const each of STATUS_COMMANDS) registerStatus(task, context, each);
  addCommand(task, 'rm', 'remove tasks and their files', 'comet-cc task rm 2 --yes')
    .argument('<id...>', TASK)
    .option('--yes', 'do not ask')
    .jsonAction('array', async (inputs: string[], flags: Flags) => {
      const ids = [...new Set(await rowIds(context, 'task', inputs))];
      const named = await Promise.all(ids.map((id) => context.engine.call('tasks/show', { id })));
      if (!flags.yes) {
        for (const { id, title } of named) context.term.say(`${id}  ${oneLine(title)}`);
        if (!(await confirmed('Remove these tasks?'))) throw new CometError('usage', 'nothing was removed');
      }
      for (const { id } of named) await context.engine.call('tasks/remove', { id });
      context.term.print(flags, named, () => named.map(({ title }) => `removed: ${oneLine(title)}`));
    });
}

export function registerInbox(program: Command, context: Context): void {
  addCommand(program, 'inbox', 'what surfaced today', 'comet-cc inbox --date 2026-11-24')
    .option('--date <day>', 'the page of this day, as 2026-11-24')
    .jsonAction('document', async (flags: { date?: string; json?: boolean }) => {
      if (flags.date !== undefined && !isDay(flags.date))
        throw new CometError('usage', `--date expects a day as 2026-11-24 (got "${oneLine(flags.date)}")`);
      const page = await context.engine.call('inbox/show', { day: flags.date });
      if (flags.json) return context.term.json(page);
      if (page.text === '') return context.term.say(`nothing surfaced on ${page.day}`);
      await context.term.page(printable(page.text).trimEnd().split('\n').map(inboxLine));
      await printOrigin(context, [{ origin: 'external' }]);
    });
}

/** Claude's own commands add nothing in the user's name. */
const speaker = ({ env }: Context): 'user' | 'tool' => (env['CLAUDECODE'] ? 'tool' : 'user');

function withFields<T extends Command>(command: T): T {
  const mode = new Option('--mode <mode>', 'when due; question: the next session asks; review: with tasks.act on');
  return command
    .option('--at <when>', 'a time ("tomorrow 9:00", "every monday at 9:30") or a cron form ("0 9 * * 1-5")')
    .addOption(mode.choices(TASK_MODES))
    .addOption(new Option('--priority <priority>', 'which comes first').choices(TASK_PRIORITIES))
    .option('--topic <name>', 'the topic page that it belongs to')
    .option('--depends-on <id...>', 'tasks that must be done before');
}

async function getFields(context: Context, { at, mode, priority, topic, dependsOn }: Flags) {
  return {
    ...{ at, topic, mode, priority },
    dependsOn: dependsOn === undefined ? undefined : await rowIds(context, 'task', dependsOn),
  };
}

function registerAdd(task: Command, context: Context): void {
  const example =
    'comet-cc task add "Check dispenser 47" --at "tomorrow 9:00" --mode question\ncomet-cc task add --from 3f2a91';
  withFields(addCommand(task, 'add', 'add a task to this project', example))
    .argument('[title...]', 'what is to be done')
    .option('--what <text>', 'more about it')
    .option('--from <todo>', 'make it of an open item of comet-cc todo, in its project')
    .option('--project <dir>', 'the project of this folder', '.')
    .option('--all', 'for every project')
    .jsonAction('document', async (words: string[], flags: Flags) => {
      const title = words.join(' ').trim();
      if (title === '' && flags.from === undefined)
        throw new CometError('usage', 'task add expects a title, or --from');
      const [from] = flags.from === undefined ? [] : await rowIds(context, 'todo', [flags.from]);
      const added = await context.engine.call('tasks/add', {
        ...(await getFields(context, flags)),
        ...{ title, what: flags.what, from, by: speaker(context) },
        projectDir: flags.all ? undefined : resolveDirectory(flags.project ?? '.'),
      });
      context.term.print(flags, added, () => [`added ${added.id}  ${oneLine(added.title)}${getMoment(added)}`]);
    });
}

function registerList(task: Command, context: Context): void {
  const { term } = context;
  addCommand(task, 'ls', 'open tasks of this project, the next first', 'comet-cc task ls --all --done')
    .option('--project <dir>', 'the project of this folder', '.')
    .option('--all', 'of every project')
    .option('--done', 'done ones too')
    .jsonAction('array', async (flags: Flags) => {
      const projectDir = flags.all ? undefined : resolveDirectory(flags.project ?? '.');
      const { tasks, problems } = await context.engine.call('tasks/list', { projectDir, all: flags.done });
      for (const { file, message } of problems) term.say(`skipped ${file}: ${oneLine(message)}`);
      if (flags.json) return term.json(tasks);
      if (tasks.length === 0)
        return term.say(flags.all ? 'no task is open' : 'no task is open here; --all: every project');
      await saveRows(context, 'task', tasks);
      await term.page(taskLines(tasks, { nowMs: Date.now(), width: term.width, projects: flags.all ?? false }));
      await printOrigin(context, tasks);
    });
}

function registerEdit(task: Command, context: Context): void {
  const examples = 'comet-cc task edit 2 --at "friday 14:00"\ncomet-cc task edit 2 --title "Check dispenser 48"';
  withFields(addCommand(task, 'edit', 'change a task; without an option its file opens in $EDITOR', examples))
    .argument('<id>', TASK)
    .option('--title <text>', 'another title')
    .jsonAction('document', async (input: string, flags: Flags) => {
      const client = context.engine;
      const [id = ''] = await rowIds(context, 'task', [input]);
      const fields = { ...(await getFields(context, flags)), title: flags.title };
      if (Object.values(fields).every((value) => value === undefined)) {
        const { file } = await client.call('tasks/show', { id });
        const { editorCommand, runEditor } = await import('../terminal/editor.ts');
        await runEditor([...editorCommand(context.env, context.term.isTerminal), file]);
        const { problems } = await client.call('tasks/list', { all: true });
        const problem = problems.find((each) => each.file === file);
        if (problem !== undefined) throw new CometError('node_invalid', `${file}: ${problem.message}; edit it again`);
        return context.term.say(`${file} is read as it is now`);
      }
      const changed = await client.call('tasks/edit', { id, fields, by: speaker(context) });
      context.term.print(flags, changed, () => [
        `changed ${changed.id}  ${oneLine(changed.title)}${getMoment(changed)}`,
      ]);
    });
}

const STATUS_COMMANDS = [
  { name: 'done', status: 'done', description: 'mark tasks as done' },
  { name: 'block', status: 'blocked', description: 'let tasks wait; they are never due' },
  { name: 'reopen', status: 'active', description: 'make tasks active again' },
] as const;
type StatusCommand = (typeof STATUS_COMMANDS)[number];

function registerStatus(task: Command, context: Context, { name, status, description }: StatusCommand): void {
  addCommand(task, name, description, `comet-cc task ${name} 2`)
    .argument('<id...>', TASK)
    .jsonAction('array', async (inputs: string[], flags: Flags) => {
      const changed: TaskView[] = [];
      for (const id of new Set(await rowIds(context, 'task', inputs)))
        changed.push(await context.engine.call('tasks/status', { id, status }));
      context.term.print(flags, changed, () => changed.map((each) => `${status}: ${oneLine(each.title)}`));
    });
}

function getMoment(task: TaskView): string {
  const when = getState(task, Date.now());
  return when === '' ? '' : `  (${when})`;
}

/** When it is due, or why it is not. */
function getState({ status, waits_for: waits, next, fired }: TaskView, nowMs: number): string {
  if (status !== 'active') return status;
  if (waits.length > 0) return `waits for ${waits.join(', ')}`;
  if (next !== null) return localTime(Date.parse(next), nowMs);
  return fired === null ? '' : `due since ${localTime(Date.parse(fired), nowMs)}`;
}

type ListLook = Pick<Look, 'nowMs' | 'width'> & { readonly projects: boolean };

export function taskLines(tasks: readonly TaskView[], { nowMs, width, projects }: ListLook): string[] {
  const getTitle = ({ title, project, priority, origin }: TaskView): string => {
    const name = projects && project !== '' ? `${projectName(project)}: ` : '';
    const mark = priority === 'high' ? '! ' : '';
    return `${name}${mark}${oneLine(title)}${isCleanOrigin(origin) ? '' : ' (noted by a tool)'}`;
  };
  return table(tasks, width, [
    { title: '#', cell: (_, row) => String(row + 1), right: true },
    { title: 'ID', cell: ({ id }) => id },
    { title: 'WHEN', cell: (task) => oneLine(getState(task, nowMs)) },
    { title: 'MODE', cell: ({ mode }) => mode, spare: true },
    { title: 'TASK', cell: getTitle, stretch: true },
  ]);
}

function detailLines(task: TaskView): string[] {
  const { id, title, statement = '', priority, mode, trigger, topic, project, origin, file, body } = task;
  const facts = [
    ['said', statement],
    ['when', [trigger ?? '', getState(task, Date.now())].filter((part) => part !== '').join(' · ')],
    ['mode', `${mode} · ${priority}`],
    ['topic', topic ?? ''],
    ['waits for', task.waits_for.join(', ')],
    ['project', project === '' ? 'every project' : project],
    ['from', isCleanOrigin(origin) ? '' : `a tool (${origin}); it is never asked in your name`],
    ['file', file],
  ];
  const shown = facts.flatMap(([name, value]) => (value === '' ? [] : [`${name}: ${oneLine(String(value))}`]));
  return [`${id}  ${oneLine(title)}`, ...shown, ...printable(body).trimEnd().split('\n')];
}
