import type { Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import { resolveDirectory } from '../../common/paths.ts';
import { oneLine } from '../../common/text.ts';
import { ago } from '../../engine/api/index.ts';
import type { Item } from '../../memory/index.ts';
import { addCommand, type CommandFlags, type Context, printOrigin } from '../context.ts';
import { parseCount } from '../terminal/format.ts';
import { displayWidth, wrapped } from '../terminal/table.ts';
import type { Look } from '../terminal/term.ts';
import { rowIds, saveRows } from './memory/ids.ts';
import { projectName } from './memory/list.ts';

type Flags = CommandFlags<'all', 'project' | 'limit'>;

interface Words {
  readonly kind: 'todo' | 'decision';
  readonly list: string;
  readonly none: string;
  readonly example: string;
}

const ITEM = 'its id, or a row number of the last list';
const ROWS = 3;

export function registerTodo(program: Command, context: Context): void {
  const todo = addCommand(program, 'todo', 'what is left to do in a project', 'comet-cc todo\ncomet-cc todo done 2');
  const none = 'nothing is left to do';
  registerItems(todo, context, { kind: 'todo', list: 'TO DO', none, example: 'renew the key by Friday' });
  registerClosing(todo, context, { kind: 'todo', name: 'done', as: 'done', description: 'mark items as done' });
  const description = 'drop items that need no doing';
  registerClosing(todo, context, { kind: 'todo', name: 'drop', as: 'dropped', description });
}

export function registerDecisions(program: Command, context: Context): void {
  const examples = 'comet-cc decisions\ncomet-cc decisions add "we deploy on Fridays"';
  const decisions = addCommand(program, 'decisions', 'what was decided in a project', examples);
  const none = 'nothing is decided';
  registerItems(decisions, context, { kind: 'decision', list: 'DECIDED', none, example: 'we deploy on Fridays' });
  const description = 'drop decisions that no longer hold';
  registerClosing(decisions, context, { kind: 'decision', name: 'drop', as: 'dropped', description });
}

function registerItems(command: ReturnType<typeof addCommand>, context: Context, words: Words): void {
  const { term } = context;
  command
    .option('--project <dir>', 'the project of this folder', '.')
    .option('--all', 'of every project')
    .option('--limit <n>', 'number of items, the newest first')
    .jsonAction('array', async (flags: Flags) => {
      const projectDir = flags.all ? undefined : resolveDirectory(flags.project ?? '.');
      const all = (await context.engine.call('items/list', { projectDir })).filter(({ kind }) => kind === words.kind);
      const items = all.slice(0, flags.limit === undefined ? undefined : parseCount(flags.limit, '--limit'));
      if (flags.json) return term.json(items);
      if (items.length === 0) return term.say(flags.all ? words.none : `${words.none} here; --all: every project`);
      await saveRows(context, words.kind, items);
      const look = { width: term.width, nowMs: Date.now(), paint: term.paint };
      await term.page(itemLines(items, words.list, { ...look, projects: flags.all ?? false }));
      await printOrigin(context, items);
    });
  addCommand(command, 'add', `note one`, `comet-cc ${command.name()} add "${words.example}"`)
    .argument('<text...>', 'a sentence')
    .option('--project <dir>', 'the project of this folder', '.')
    .jsonAction('document', async (text: string[], flags: Flags) => {
      const said = text.join(' ').trim();
      if (said === '') throw new CometError('usage', `${command.name()} add expects a sentence`);
      // Claude Code names itself to the commands that Claude runs; a program that somebody else started has no terminal.
      const isTyped = !context.env['CLAUDECODE'] && process.stdin.isTTY === true;
      const added = { kind: words.kind, text: said, projectDir: resolveDirectory(flags.project ?? '.') };
      const item = await context.engine.call('items/add', { ...added, typed: isTyped });
      term.print(flags, item, () => [`noted ${item.id}  ${oneLine(item.text)}`]);
    });
}

interface Closing {
  readonly kind: Words['kind'];
  readonly name: string;
  readonly as: 'done' | 'dropped';
  readonly description: string;
}

function registerClosing(command: Command, context: Context, { kind, name, as, description }: Closing): void {
  addCommand(command, name, description, `comet-cc ${command.name()} ${name} 2`)
    .argument('<id...>', ITEM)
    .jsonAction('array', async (inputs: string[], flags: Flags) => {
      const ids = [...new Set(await rowIds(context, kind, inputs))];
      const items = await context.engine.call('items/close', { ids, as });
      context.term.print(flags, items, () => items.map(({ text }) => `${as}: ${oneLine(text)}`));
    });
}

export function itemLines(
  items: readonly Item[],
  title: string,
  { width, nowMs, paint, projects }: Look & { readonly projects: boolean },
): string[] {
  const numbers = String(items.length).length;
  const ages = items.map(({ at }) => ago(Date.parse(at), nowMs).replace(' ago', ''));
  const names = items.map(({ project }) => (projects ? `${projectName(project)}: ` : ''));
  const aged = Math.max(3, ...ages.map((age) => displayWidth(age)));
  const indent = numbers + 6 + aged + 6;
  const heading = `${'#'.padStart(numbers)}  ID      ${'AGE'.padEnd(aged)}  ${title}`;
  const rows = items.flatMap(({ id, text, origin }, row) => {
    const itemLine = `${names[row]}${oneLine(text)}${origin === 'external' ? ' (from outside)' : ''}`;
    const head = `${String(row + 1).padStart(numbers)}  ${id}  ${(ages[row] as string).padEnd(aged)}  `;
    return wrapped(itemLine, Math.max(12, width - indent), ROWS).map((line, at) =>
      at === 0 ? paint('dim', head) + line : ' '.repeat(indent) + line,
    );
  });
  return [paint('dim', heading), ...rows];
}
