import path from 'node:path';
import { type Command, Option } from 'commander';
import { CometError } from '../../../common/errors.ts';
import { resolveDirectory } from '../../../common/paths.ts';
import { oneLine } from '../../../common/text.ts';
import type { OperationResults } from '../../../engine/api/index.ts';
import { engineOf } from '../../../engine/api/index.ts';
import type { Context } from '../../context.ts';
import { count } from '../../terminal/format.ts';
import { type ClaudeFlags, importClaude } from './import-claude.ts';
import { watched } from './watch.ts';

const LONGEST_MS = 3_600_000;

interface Flags extends ClaudeFlags {
  readonly as?: 'nodes' | 'document' | 'turns';
}

const ONLY_CLAUDE = { dryRun: '--dry-run', since: '--since', llm: '--llm', budget: '--budget' } as const;

export function registerMemoryImport(memory: Command, context: Context): void {
  memory
    .command('import')
    .description("import Claude Code's past conversations, a document, turns, or an export of comet-cc")
    .argument('<what>', 'claude, or a file: an export, turns (JSON lines), or any other text as a document')
    .addOption(new Option('--as <kind>', 'what the file is').choices(['nodes', 'document', 'turns']))
    .option('--project <dir>', 'project of the file (default: the current directory); with claude: only this project')
    .option('--dry-run', 'with claude: print the counts and the cost only')
    .option('--since <d>', 'with claude: only turns since 30m, 12h, 7d, 2w or a date')
    .option('--llm <who>', 'with claude: local (no model) or claude (the configured model)')
    .option('--budget <tokens>', 'with --llm claude: token budget (default 200000)')
    .option('--again', 'also import chunks that were removed from memory; with claude: unchanged transcripts too')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      '\nImporting a document again adds what is new in it and removes what it no longer contains. Turns are JSON lines\n' +
        'of session_id, turn_id, role, content and at. The import continues in the engine when this command is\n' +
        'interrupted; importing twice adds nothing.\n' +
        '\nExamples:\n  comet-cc memory import claude --dry-run\n  comet-cc memory import docs/runbook.md\n' +
        '  comet-cc memory import memory.jsonl',
    )
    .action(async (file: string, flags: Flags) => {
      if (file === 'claude') return importClaude(flags, context);
      for (const [key, name] of Object.entries(ONLY_CLAUDE)) {
        if (key in flags) throw new CometError('usage', `${name} is for "import claude" only`);
      }
      const input = {
        file: path.resolve(file),
        projectDir: resolveDirectory(flags.project ?? '.'),
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
  const { added } = report;
  if (report.kind === 'nodes') {
    const { replaced, unchanged, briefs } = report;
    const nodes = `${count(added)} added, ${count(replaced)} replaced, ${count(unchanged)} as they were`;
    return [`${nodes}; ${count(briefs)} briefs`];
  }
  if (report.kind === 'turns') {
    const { sessions, turns, known, skipped: left } = report;
    return [
      `${count(turns)} turns of ${count(sessions)} sessions: ${count(added)} added, ${count(known)} known, ${count(left)} skipped`,
    ];
  }
  const { unchanged, chunks, outdated, skipped, session_id } = report;
  const lines = [
    `${count(chunks)} pieces: ${count(added)} added, ${count(unchanged)} known, ${count(outdated)} outdated ones removed`,
  ];
  if (skipped > 0) lines.push(`${count(skipped)} skipped because you removed them; --again imports them`);
  if (chunks > 0) lines.push(`verbatim: comet-cc memory restore ${oneLine(session_id)}`);
  return lines;
}
