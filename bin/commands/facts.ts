import { Argument, type Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import { resolveDirectory } from '../../common/paths.ts';
import { formatCount, localTime, oneLine } from '../../common/text.ts';
import type { FactReason, FactView } from '../../memory/index.ts';
import { addCommand, type CommandFlags, type Context, printOrigin, requireUser } from '../context.ts';
import { SPEAKERS, shortId } from '../terminal/format.ts';
import { table } from '../terminal/table.ts';
import { confirmed } from '../terminal/term.ts';
import { rowIds, saveRows } from './memory/ids.ts';
import { projectName } from './memory/list.ts';

type Flags = CommandFlags<'all', 'concept' | 'class' | 'project'>;

const CLASSES: Readonly<Record<FactView['persistence_class'], string>> = {
  permanent: 'does not fade',
  long_term: 'fades over months',
  session: 'for its session',
  ephemeral: 'for a few turns',
};

export function registerFacts(program: Command, context: Context): void {
  const examples = 'comet-cc facts ls\ncomet-cc facts about me\ncomet-cc facts forget 3f2a91';
  const facts = addCommand(program, 'facts', 'what holds now, of you and of this project', examples);
  withProject(addCommand(facts, 'ls', 'facts of this project and of you', 'comet-cc facts ls --concept Project'))
    .option('--concept <prefix>', 'concepts that begin with this, as Project or Project.Decision')
    .option('--class <class>', 'permanent, long_term, session or ephemeral')
    .jsonAction('array', async (flags: Flags) => list(context, flags, getFilter(flags)));
  const told = 'what is remembered about you, with what you said';
  withProject(addCommand(facts, 'about', told, 'comet-cc facts about me'))
    .addArgument(new Argument('[whom]', 'you').choices(['me']))
    .jsonAction('array', (_: string | undefined, flags: Flags) => list(context, flags, undefined, aboutLines));
  addCommand(facts, 'why', 'what a fact rests on', 'comet-cc facts why 2')
    .argument('<id>', 'its last six characters, an unambiguous prefix, or a row number of the last list')
    .jsonAction('document', async (input: string, flags: Flags) => {
      const [id = ''] = await rowIds(context, 'fact', [input]);
      const reasons = await context.engine.call('facts/why', { id });
      context.term.print(flags, reasons, () => whyLines(reasons));
      if (!flags.json) await printOrigin(context, [reasons]);
    });
  registerForget(facts, context);
  registerAllow(facts, context);
}

async function list(
  context: Context,
  flags: Flags,
  isWanted: (fact: FactView) => boolean = () => true,
  lines?: typeof aboutLines,
): Promise<void> {
  const { term, engine: client } = context;
  const { facts: all, problems } = await client.call('facts/list', { projectDir: getProjectDir(flags) });
  const facts = all.filter(isWanted);
  for (const { file, message } of problems) term.say(`${file}: ${oneLine(message)}`);
  if (flags.json) return term.json(facts);
  if (facts.length === 0) return term.say(`no such fact is known${flags.all ? '' : ' here; --all: every project'}`);
  await saveRows(context, 'fact', facts);
  await term.page(lines === undefined ? factLines(facts, term.width, flags.all ?? false) : lines(facts));
  await printOrigin(context, facts);
}

function registerForget(facts: Command, context: Context): void {
  const description = 'erase facts; the conversation stays (memory forget removes it)';
  withProject(addCommand(facts, 'forget', description, 'comet-cc facts forget Project.Owner --yes'))
    .argument('<id...>', 'a concept, or a fact: its last six characters, a prefix, or a row number of the last list')
    .option('--yes', 'do not ask')
    .jsonAction('array', async (inputs: string[], flags: Flags) => {
      const projectDir = getProjectDir(flags);
      const names = [...new Set(await rowIds(context, 'fact', inputs))];
      if (!flags.yes) {
        const { facts: all } = await context.engine.call('facts/list', { projectDir });
        const named = all.filter(({ id, concept }) => names.some((name) => name === concept || id.endsWith(name)));
        for (const { id, concept, value } of named) context.term.say(`${shortId(id)}  ${concept}: ${oneLine(value)}`);
        if (!(await confirmed('Erase these facts?'))) throw new CometError('usage', 'nothing was erased');
      }
      const removal = await context.engine.call('facts/forget', { names, projectDir });
      context.term.print(flags, removal, () => [
        ...removal.map(({ concept, value }) => `erased: ${concept}: ${oneLine(value)}`),
        `${formatCount(removal.length, 'fact')} erased`,
      ]);
    });
}

function registerAllow(facts: Command, context: Context): void {
  const description = 'let subagents that a project defines see the facts that they ask for';
  addCommand(facts, 'allow', description, 'comet-cc facts allow .')
    .argument('[dir]', 'the folder with .claude/agents', '.')
    .option('--yes', 'do not ask')
    .jsonAction('array', async (dir: string, flags: Flags) => {
      const { paths, term } = context;
      requireUser(context);
      const { allowAgents, projectAgents } = await import('../../engine/policy/index.ts');
      const agents = await projectAgents(resolveDirectory(dir));
      if (agents.length === 0)
        throw new CometError('not_found', 'no file of .claude/agents here has `memory:` with prefixes or classes');
      for (const { name, filter } of agents)
        term.say(`${oneLine(name)}: ${oneLine([...filter.prefixes, ...filter.classes].join(', ') || 'nothing')}`);
      if (!flags.yes && !(await confirmed('Let these subagents see these facts?'))) return;
      await allowAgents(paths, agents);
      const allowed = agents.map(({ name, file, filter }) => ({ name, file, ...filter }));
      term.print(flags, allowed, () => ['from their next start on; a change of a file needs your consent again']);
    });
}

function withProject<T extends Command>(command: T): T {
  return command.option('--project <dir>', 'the project of this folder', '.').option('--all', 'of every project');
}

function getProjectDir({ all, project }: Flags): string | undefined {
  return all ? undefined : resolveDirectory(project ?? '.');
}

function getFilter({ concept = '', class: given }: Flags): (fact: FactView) => boolean {
  const wanted = given?.replace('-', '_');
  if (wanted !== undefined && !Object.hasOwn(CLASSES, wanted))
    throw new CometError('usage', `--class expects ${Object.keys(CLASSES).join(', ')} (got "${oneLine(given ?? '')}")`);
  return (fact) =>
    fact.concept.toLowerCase().startsWith(concept.toLowerCase()) &&
    (wanted ?? fact.persistence_class) === fact.persistence_class;
}

export function factLines(facts: readonly FactView[], width: number, projects: boolean): string[] {
  const name = ({ project }: FactView): string => (project === '' ? '' : projectName(project));
  return table(facts, width, [
    { title: '#', cell: (_, row) => String(row + 1), right: true },
    { title: 'ID', cell: ({ id }) => shortId(id) },
    ...(projects ? [{ title: 'PROJECT', cell: name }] : []),
    { title: 'CONCEPT', cell: ({ concept }) => concept },
    { title: 'FACT', cell: ({ value }) => oneLine(value), stretch: true },
    { title: 'STRENGTH', cell: ({ salience }) => percent(salience), right: true, spare: true },
  ]);
}

function aboutLines(facts: readonly FactView[]): string[] {
  return facts.flatMap((fact, at) => {
    const { concept, label, value, evidence, origin, valid_from: from, salience, persistence_class } = fact;
    const isNew = facts[at - 1]?.concept !== concept;
    const head = isNew ? [...(at === 0 ? [] : ['']), `${concept}: ${oneLine(label)}`] : [];
    const source = `${SPEAKERS[origin]}, ${localTime(Date.parse(from), Date.now())}: “${oneLine(evidence)}”`;
    return [...head, `  ${oneLine(value)}  (${percent(salience)}, ${CLASSES[persistence_class]})`, `    ${source}`];
  });
}

function whyLines(fact: FactReason): string[] {
  const { id, concept, label, value, evidence, origin, asserted, valid_from: from, memories } = fact;
  const rows = [
    ['concept', label],
    ['said', `“${evidence}”`],
    ['by', SPEAKERS[origin]],
    ['times', asserted === 1 ? 'once' : String(asserted)],
    ['since', localTime(Date.parse(from), Date.now())],
    ['strength', `${percent(fact.salience)}, ${CLASSES[fact.persistence_class]}`],
    ['project', fact.project === '' ? 'every project' : fact.project],
    ['session', fact.session_title],
    ['memories', memories.map(shortId).join(', ')],
  ] as const;
  const shown = rows.flatMap(([name, text]) => (text === '' ? [] : [`${name}: ${oneLine(text)}`]));
  return [`${shortId(id)}  ${concept}: ${oneLine(value)}`, ...shown];
}

const percent = (salience: number): string => `${Math.round(salience * 100)} %`;
