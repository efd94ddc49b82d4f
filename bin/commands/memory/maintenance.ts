import path from 'node:path';
import { type Command, Option } from 'commander';
import { CometError } from '../../../common/errors.ts';
import { writeOutput } from '../../../common/files.ts';
import { resolveDirectory } from '../../../common/paths.ts';
import { printable } from '../../../common/text.ts';
import { ago, type EngineStatus, getEngine } from '../../../engine/api/index.ts';
import type { SnapshotInfo } from '../../../memory/index.ts';
import { addCommand, type CommandFlags, type Context, readingEngine } from '../../context.ts';
import { count, counted } from '../../terminal/format.ts';
import { table } from '../../terminal/table.ts';
import { handoverSections, handoverText, type Purpose } from './handover.ts';
import { watched } from './watch.ts';

const LONGEST_MS = 3_600_000;

export function registerMemoryReindex(memory: Command, context: Context): void {
  addCommand(memory, 'reindex', 'rebuild the search index from the files', 'comet-cc memory reindex')
    .option('--json', 'print one JSON document')
    .action(async (flags: CommandFlags) => {
      const run = () => getEngine(context.paths).call('memory/reindex', {}, { timeoutMs: LONGEST_MS });
      const progress = ({ reindex }: EngineStatus): string =>
        reindex === null ? '' : `indexing ${count(reindex.done)} of ${count(reindex.total)}`;
      const nodes = await watched(context, flags, progress, run);
      context.term.print(flags, { nodes }, () => [`indexed ${counted(nodes, 'memory', 'memories')}`]);
    });
}

export function registerMemoryRollback(memory: Command, context: Context): void {
  memory
    .command('rollback')
    .description('restore memories from a snapshot; without an argument: list snapshots')
    .argument('[snapshot]', 'unambiguous prefix of its id')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      '\nMemories of later conversations are kept. Memories removed with rm are not restored.' +
        '\n\nExample:\n  comet-cc memory rollback 20261121T22',
    )
    .action(async (snapshot: string | undefined, flags: CommandFlags) => {
      const client = getEngine(context.paths);
      const { term } = context;
      if (snapshot === undefined) {
        const snapshots = await client.call('snapshots/list', {});
        if (snapshots.length === 0 && !flags.json) return term.say('no snapshots yet; one is taken before each change');
        return term.print(flags, snapshots, () => snapshotLines(snapshots, term.width, Date.now()));
      }
      const report = await client.call('snapshots/rollback', { id: snapshot }, { timeoutMs: LONGEST_MS });
      if (flags.json) return term.json(report);
      term.out(`${report.restored} restored, ${report.removed} removed, ${counted(report.briefs, 'brief')} restored`);
      term.say(`to undo this: comet-cc memory rollback ${report.undo}`);
    });
}

function snapshotLines(snapshots: readonly SnapshotInfo[], width: number, nowMs: number): string[] {
  return table(
    [
      { title: 'SNAPSHOT', cells: snapshots.map(({ id }) => id) },
      { title: 'WHEN', cells: snapshots.map(({ at }) => ago(Date.parse(at), nowMs)) },
      { title: 'BEFORE', cells: snapshots.map(({ reason }) => reason) },
      { title: 'BYTES', cells: snapshots.map(({ bytes }) => String(bytes)), right: true },
    ],
    width,
  );
}

type ExportFlags = CommandFlags<never, 'out'> & {
  readonly format: 'md' | 'html' | 'jsonl';
  readonly for?: Purpose;
  readonly project: string;
};

async function exported(context: Context, { format, project, for: purpose }: ExportFlags): Promise<string> {
  const client = readingEngine(context);
  if (purpose === undefined) {
    if (format === 'html') throw new CometError('usage', '--format html needs --for pr or --for handover');
    return await client.call('memory/export', { format }, { timeoutMs: LONGEST_MS });
  }
  if (format === 'jsonl') throw new CometError('usage', '--for takes --format md or html');
  const projectDir = resolveDirectory(project);
  const view = await client.call('project/overview', { projectDir });
  const sections = handoverSections(await client.call('items/list', { projectDir }), view, purpose);
  if (sections.length === 0) {
    context.term.say('nothing to export of this project yet; --project names another folder');
    return '';
  }
  return handoverText(view.project, sections, format);
}

export function registerMemoryExport(memory: Command, context: Context): void {
  const description = 'export all memories and briefs as one text, or with --for what others should know of a project';
  const examples = 'comet-cc memory export --for pr\ncomet-cc memory export --format jsonl --out memory.jsonl';
  addCommand(memory, 'export', description, examples)
    .addOption(new Option('--format <f>', 'html only with --for').choices(['md', 'html', 'jsonl']).default('md'))
    .addOption(new Option('--for <purpose>', 'text to paste').choices(['pr', 'handover']))
    .option('--project <dir>', 'with --for: the project of this folder', '.')
    .option('--out <file>', 'write to this file (0600)')
    .action(async (flags: ExportFlags) => {
      const text = await exported(context, flags);
      if (flags.out === undefined) return void context.stdout.write(context.term.isTerminal ? printable(text) : text);
      await writeOutput(path.resolve(flags.out), text);
      context.term.say(`wrote ${flags.out}`);
    });
}
