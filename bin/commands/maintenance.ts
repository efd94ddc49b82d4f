import type { Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import { resolveDirectory } from '../../common/paths.ts';
import { oneLine } from '../../common/text.ts';
import { getEngine } from '../../engine/api/index.ts';
import type { DreamReport } from '../../memory/index.ts';
import { addCommand, type CommandFlags, type Context } from '../context.ts';
import { count, parseCount, shortId } from '../terminal/format.ts';

const MOST_MS = 3_600_000;

export function registerFlush(program: Command, context: Context): void {
  const description = 'wait until all turns are processed; exit code 1 on timeout';
  addCommand(program, 'flush', description, 'comet-cc flush --timeout 60')
    .option('--timeout <s>', 'seconds to wait', '120')
    .action(async (flags: { timeout: string }) => {
      const seconds = parseCount(flags.timeout, '--timeout');
      const timeoutMs = Math.min(seconds * 1_000, MOST_MS);
      context.term.progress('waiting until everything is summarized and indexed…');
      const idle = await getEngine(context.paths).call('flush', { timeoutMs }, { timeoutMs: timeoutMs + 5_000 });
      if (idle) return context.term.out('all turns are processed');
      const hint = 'see comet-cc status, or wait with --timeout';
      throw new CometError('model_timeout', `not idle after ${seconds} s; ${hint}`);
    });
}

export function registerDream(program: Command, context: Context): void {
  const notes =
    'Runs each night with a brief (dream.at), and when idle without one (dream.idleMinutes; 0: never). Undo it with comet-cc memory rollback.';
  addCommand(program, 'dream', 'tidy memory, write the topic pages and the brief', 'comet-cc dream --dry-run', notes)
    .option('--dry-run', 'print the changes without making them')
    .option('--project <dir>', 'only the memory of the project in this directory')
    .jsonAction('document', async ({ dryRun = false, project, json }: CommandFlags<'dryRun', 'project'>) => {
      const request = { dryRun, projectDir: project === undefined ? undefined : resolveDirectory(project) };
      if (!json) context.term.progress('consolidating…');
      const report = await getEngine(context.paths).call('memory/dream', request);
      context.term.print({ json }, report, () => dreamLines(report));
      for (const { file, message } of json ? [] : report.pages.problems)
        context.term.say(`skipped ${oneLine(file)}: ${oneLine(message)}`);
      if (report.snapshot === null || json) return;
      context.term.say(`to undo this: comet-cc memory rollback ${report.snapshot}`);
    });
}

function dreamLines(report: DreamReport): string[] {
  const { merged, groups, tags, pruned } = report;
  const lines = [
    ...merged.map(
      (each) => `merged  ${each.merged.map(shortId).join(', ')} into ${shortId(each.keeper)}: ${oneLine(each.summary)}`,
    ),
    ...groups.map(
      (each) =>
        `grouped ${each.members.map(shortId).join(', ')} under ${shortId(each.parent)}: ${oneLine(each.summary)}`,
    ),
    ...tags.map(({ from, to }) => `tag     ${oneLine(from)} is ${oneLine(to)}`),
    ...pruned.nodes.map((id) => `pruned  ${shortId(id)}`),
  ];
  const width = Math.max(...report.phases.map(({ name }) => name.length));
  lines.push(...report.phases.map(({ name, line }) => `${name.padEnd(width)}  ${oneLine(line)}`));
  if (report.left > 0) lines.push(`${count(report.left)} are left for the next run`);
  if (report.without_model !== '') lines.push(`no model available, used rules: ${oneLine(report.without_model)}`);
  return lines;
}
