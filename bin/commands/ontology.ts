import { existsSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import { createExclusive, ensureDir, readFileIfPresent, writeFileAtomic } from '../../common/files.ts';
import { ONTOLOGY_SCHEMA, resolveDirectory } from '../../common/paths.ts';
import { formatCount, oneLine, parseJson } from '../../common/text.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import { addCommand, type CommandFlags, type Context, EXIT, projectKey, requireUser } from '../context.ts';
import { table } from '../terminal/table.ts';
import { confirmed } from '../terminal/term.ts';

type Flags = CommandFlags<never, 'project'>;

const PROJECT_FILE = path.join('.comet-cc', 'ontology.json');

export function registerOntology(program: Command, context: Context): void {
  const examples = 'comet-cc ontology show\ncomet-cc ontology init\ncomet-cc ontology check';
  const ontology = addCommand(program, 'ontology', 'what facts may be about', examples);
  addCommand(ontology, 'show', 'the concepts that hold here', 'comet-cc ontology show --json')
    .option('--project <dir>', 'with the concepts of this project', '.')
    .option('--json', 'print the ontology as one JSON document')
    .action(async (flags: Flags) => {
      const { openOntologies } = await import('../../memory/index.ts');
      const key = await projectKey(context, flags.project ?? '.');
      const { ontology: shown, problems } = await openOntologies(context.paths)(key);
      for (const { file, message } of problems) context.term.say(`${file}: ${oneLine(message)}`);
      context.term.print(flags, shown, () =>
        table(Object.entries(shown.concepts), context.term.width, [
          { title: 'CONCEPT', cell: ([name]) => name },
          { title: 'CLASS', cell: ([, { persistence_class }]) => persistence_class.replace('_', ' ') },
          { title: 'AT MOST', cell: ([, { cardinality }]) => String(cardinality) },
          { title: 'MEANING', cell: ([, { label }]) => oneLine(label), stretch: true },
        ]),
      );
    });
  registerCheck(ontology, context);
  const init = addCommand(ontology, 'init', 'write the default into a file of your own', 'comet-cc ontology init');
  init.jsonAction('document', async (flags: Flags) => {
    const { DEFAULT_ONTOLOGY } = await import('../../memory/index.ts');
    const file = context.paths.ontologyFile;
    await ensureDir(path.dirname(file));
    const text = { $schema: `./${ONTOLOGY_SCHEMA}`, ...DEFAULT_ONTOLOGY };
    if (!(await createExclusive(file, `${JSON.stringify(text, null, 2)}\n`)))
      throw new CometError('unsafe_file', `${file} is there already; edit it, or remove it to begin again`);
    await writeSchema(context.paths);
    context.term.print(flags, { file }, () => [`${file} holds the default now; what you change there holds at once`]);
  });
  registerAllow(ontology, context);
  registerPropose(ontology, context);
}

function registerCheck(ontology: Command, context: Context): void {
  const description = 'whether an ontology file is valid; exit code 1 where it is not';
  addCommand(ontology, 'check', description, 'comet-cc ontology check .comet-cc/ontology.json')
    .argument('[file]', 'default: your own, and that of this folder')
    .jsonAction('document', async (input: string | undefined, flags: Flags) => {
      const { parseOntology } = await import('../../memory/index.ts');
      const own = [context.paths.ontologyFile, path.resolve(PROJECT_FILE)].filter(existsSync);
      const files = input === undefined ? own : [path.resolve(input)];
      const checked = await Promise.all(
        files.map(async (file) => {
          // A pipe that the user names, as of `<(jq …)`, ends.
          const isPipe = statSync(file, { throwIfNoEntry: false })?.isFIFO();
          const text = await (isPipe ? readFile(file, 'utf8') : readFileIfPresent(file));
          if (text === null) throw new CometError('not_found', `${file} is not there`);
          const value = parseJson(text);
          const read = parseOntology(value);
          const concepts = read.ok ? Object.keys(read.ontology.concepts).length : 0;
          const problems = read.ok ? [] : value === undefined ? [{ path: '', message: 'is no JSON' }] : read.problems;
          return { file, ok: read.ok, concepts, problems, warnings: read.ok ? read.warnings : [] };
        }),
      );
      if (checked.some(({ ok }) => !ok)) context.exitCode = EXIT.failed;
      context.term.print(flags, checked, () =>
        checked.length === 0
          ? ['there is no ontology file; the default holds (comet-cc ontology show)']
          : checked.flatMap(({ file, ok, concepts, problems, warnings }) => [
              `${oneLine(file)}: ${ok ? formatCount(concepts, 'concept') : 'is not valid'}`,
              ...[...problems, ...warnings].map(
                ({ path: at, message }) => `  ${oneLine(at)}${at === '' ? '' : ': '}${oneLine(message)}`,
              ),
            ]),
      );
    });
}

function registerAllow(ontology: Command, context: Context): void {
  addCommand(ontology, 'allow', "let a project's own ontology file add concepts for it", 'comet-cc ontology allow .')
    .argument('[dir]', 'the folder with .comet-cc/ontology.json', '.')
    .option('--yes', 'do not ask')
    .jsonAction('document', async (dir: string, flags: Flags) => {
      const { paths, term } = context;
      requireUser(context);
      const file = path.join(resolveDirectory(dir), PROJECT_FILE);
      const text = await readFileIfPresent(file);
      if (text === null) throw new CometError('not_found', `${file} is not there`);
      const { allowOntology, openOntologies, parseOntology, withProject } = await import('../../memory/index.ts');
      const read = parseOntology(parseJson(text));
      if (!read.ok) throw new CometError('node_invalid', `${file} is not valid; comet-cc ontology check names why`);
      const names = Object.keys(read.ontology.concepts);
      const { ontology: own } = await openOntologies(paths)('');
      const refused = withProject(own, read.ontology).warnings.map(({ path: at }) => at);
      for (const name of names.filter((each) => !refused.includes(`concepts.${each}`)))
        term.say(`${name}: ${oneLine(read.ontology.concepts[name]?.label ?? '')}`);
      if (!flags.yes && !(await confirmed('Let facts of this project be about these?'))) return;
      const project = await projectKey(context, dir);
      await allowOntology(paths, project, { file, text });
      term.print(flags, { project, file, concepts: names }, () => [
        `from now on facts of this project may be about them; a change of the file needs your consent again`,
      ]);
    });
}

function registerPropose(ontology: Command, context: Context): void {
  const description = 'concepts for what your memories speak of often; writes nothing unless --apply is given';
  addCommand(ontology, 'propose', description, 'comet-cc ontology propose\ncomet-cc ontology propose --apply')
    .option('--all', 'from the memories of every project')
    .option('--apply', 'add them to your own ontology file')
    .jsonAction('document', async (flags: Flags & { readonly all?: boolean; readonly apply?: boolean }) => {
      const { openOntologies, proposeConcepts } = await import('../../memory/index.ts');
      const filter = flags.all ? {} : { projectDir: resolveDirectory('.') };
      const items = await context.engine.call('items/list', filter);
      const { ontology: own, problems } = await openOntologies(context.paths)('');
      if (problems.length > 0)
        throw new CometError('node_invalid', 'the ontology file is not valid; comet-cc ontology check names why');
      // A model is shown the examples, so that nothing from outside may be one.
      const clean = items.filter(({ origin }) => isCleanOrigin(origin));
      const proposals = proposeConcepts(clean, own);
      if (flags.apply && proposals.length > 0) {
        const added = Object.fromEntries(proposals.map(({ name, concept }) => [name, concept]));
        const text = { $schema: `./${ONTOLOGY_SCHEMA}`, ...own, concepts: { ...own.concepts, ...added } };
        await writeSchema(context.paths);
        await writeFileAtomic(context.paths.ontologyFile, `${JSON.stringify(text, null, 2)}\n`);
      }
      const done = flags.apply ? `${context.paths.ontologyFile} holds them now` : 'comet-cc ontology propose --apply';
      context.term.print(flags, proposals, () =>
        proposals.length === 0
          ? ['nothing that several sessions speak of is missing']
          : [
              ...proposals.flatMap(({ name, concept, statements, sessions }) => [
                `${name}: ${concept.label}; ${formatCount(statements, 'memory', 'memories')} of ${formatCount(sessions, 'session')}`,
                ...concept.examples.map((example) => `  ${oneLine(example)}`),
              ]),
              flags.apply ? done : `add them: ${done}`,
            ],
      );
    });
}

/** For editors. */
async function writeSchema({ ontologyFile }: Context['paths']): Promise<void> {
  const { ontologyJsonSchema } = await import('../../memory/index.ts');
  const dir = path.dirname(ontologyFile);
  await ensureDir(dir);
  await createExclusive(path.join(dir, ONTOLOGY_SCHEMA), `${JSON.stringify(ontologyJsonSchema(), null, 2)}\n`);
}
