import path from 'node:path';
import { type Command, Option } from 'commander';
import { writeOutput } from '../../../common/files.ts';
import { printable } from '../../../common/text.ts';
import { ago, type EngineStatus, getEngine } from '../../../engine/api/index.ts';
import type { SnapshotInfo } from '../../../memory/index.ts';
import { addCommand, type CommandFlags, type Context } from '../../context.ts';
import { count, counted } from '../../terminal/format.ts';
import { table } from '../../terminal/table.ts';
import { watched } from './watch.ts';

export function registerMemoryReindex(memory: Command, context: Context): void {
  const reindex = addCommand(memory, 'reindex', 'rebuild the search index from the files', 'comet-cc memory reindex');
  reindex.jsonAction('document', async (flags: CommandFlags) => {
    const progress = ({ reindex: state }: EngineStatus): string =>
      state === null ? '' : `indexing ${count(state.done)} of ${count(state.total)}`;
    const nodes = await watched(context, flags, progress, () => getEngine(context.paths).call('memory/reindex', {}));
    context.term.print(flags, { nodes }, () => [`indexed ${counted(nodes, 'memory', 'memories')}`]);
  });
}

export function registerMemoryRollback(memory: Command, context: Context): void {
  const description = 'restore memories from a snapshot; without an argument: list snapshots';
  const notes = 'Memories of later conversations are kept. Memories removed with rm are not restored.';
  addCommand(memory, 'rollback', description, 'comet-cc memory rollback 20261121T22', notes)
    .argument('[snapshot]', 'unambiguous prefix of its id')
    .jsonAction('document', async (snapshot: string | undefined, flags: CommandFlags) => {
      const { term, engine: client } = context;
      if (snapshot === undefined) {
        const snapshots = await client.call('snapshots/list', {});
        if (snapshots.length === 0 && !flags.json) return term.say('no snapshots yet; one is taken before each change');
        return term.print(flags, snapshots, () => snapshotLines(snapshots, term.width, Date.now()));
      }
      const report = await client.call('snapshots/rollback', { id: snapshot });
      if (flags.json) return term.json(report);
      term.out(`${report.restored} restored, ${report.removed} removed, ${counted(report.briefs, 'brief')} restored`);
      term.say(`to undo this: comet-cc memory rollback ${report.undo}`);
    });
}

function snapshotLines(snapshots: readonly SnapshotInfo[], width: number, nowMs: number): string[] {
  return table(snapshots, width, [
    { title: 'SNAPSHOT', cell: ({ id }) => id },
    { title: 'WHEN', cell: ({ at }) => ago(Date.parse(at), nowMs) },
    { title: 'BEFORE', cell: ({ reason }) => reason },
    { title: 'BYTES', cell: ({ bytes }) => String(bytes), right: true },
  ]);
}

export function registerMemoryExport(memory: Command, context: Context): void {
  const example = 'comet-cc memory export --format jsonl --out memory.jsonl';
  addCommand(memory, 'export', 'export all memories, briefs, facts, pages and tasks as one text', example)
    .addOption(new Option('--format <f>', 'syntax').choices(['md', 'jsonl']).default('md'))
    .option('--out <file>', 'write to this file (0600)')
    .action(async ({ format, out }: { format: 'md' | 'jsonl'; out?: string }) => {
      const text = await context.engine.call('memory/export', { format });
      if (out === undefined) return void context.stdout.write(context.term.isTerminal ? printable(text) : text);
      await writeOutput(path.resolve(out), text);
      context.term.say(`wrote ${out}`);
    });
}
