import path from 'node:path';
import { type Command, Option } from 'commander';
import type { OperationResults } from '../../api/operations.ts';
import type { Context } from '../../context.ts';
import { engineOf } from '../../engine.ts';
import { count, oneLine } from '../../format.ts';
import { watched } from './watch.ts';

const LONGEST_MS = 3_600_000;

interface Flags {
  readonly as?: 'nodes' | 'document';
  readonly project?: string;
  readonly again?: boolean;
  readonly json?: boolean;
}

export function registerMemoryImport(memory: Command, context: Context): void {
  memory
    .command('import')
    .description('take in a text or markdown file by pieces, or take an export of comet-cc back')
    .argument('<file>', 'an export in either format is known by its first line; anything else is a document')
    .addOption(new Option('--as <kind>', 'what the file is').choices(['nodes', 'document']))
    .option('--project <dir>', 'whose memory takes a document in (default: the current directory)')
    .option('--again', 'pieces too that were removed from memory before')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      '\nA document is searched like any memory; importing it again adds only what is new in it and removes what it no\n' +
        'longer says. The engine goes on with it when this command is interrupted.\n' +
        '\nExamples:\n  comet-cc memory import docs/runbook.md\n  comet-cc memory import memory.jsonl',
    )
    .action(async (file: string, flags: Flags) => {
      const input = {
        file: path.resolve(file),
        projectDir: path.resolve(flags.project ?? '.'),
        ...(flags.as === undefined ? {} : { as: flags.as }),
        ...(flags.again ? { again: true } : {}),
      };
      const run = () => engineOf(context.paths).call('memory/import', input, { timeoutMs: LONGEST_MS });
      if (flags.json) return context.term.json(await run());
      const report = await watched(
        context,
        ({ importing }) =>
          importing === null ? '' : `importing: ${count(importing.done)} of ${count(importing.total)} pieces`,
        run,
      );
      for (const line of reportLines(report)) context.term.out(line);
    });
}

export function reportLines(report: OperationResults['memory/import']): string[] {
  const { added, unchanged } = report;
  if (report.kind === 'nodes') {
    const { replaced, briefs } = report;
    const nodes = `${count(added)} added, ${count(replaced)} replaced, ${count(unchanged)} as they were`;
    return [`${nodes}; ${count(briefs)} briefs`];
  }
  const { chunks, outdated, skipped, session_id } = report;
  const lines = [
    `${count(chunks)} pieces: ${count(added)} added, ${count(unchanged)} known, ${count(outdated)} outdated ones removed`,
  ];
  if (skipped > 0) lines.push(`${count(skipped)} left out, which you had removed; --again takes them in`);
  if (chunks > 0) lines.push(`verbatim: comet-cc memory restore ${oneLine(session_id)}`);
  return lines;
}
