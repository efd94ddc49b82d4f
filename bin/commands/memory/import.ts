import path from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { CometError } from '../../../common/errors.ts';
import { resolveDirectory } from '../../../common/paths.ts';
import { oneLine } from '../../../common/text.ts';
import { type ClaudeReport, type EngineStatus, getEngine, type OperationResults } from '../../../engine/api/index.ts';
import { claudeDirectory } from '../../../install/index.ts';
import { addCommand, type CommandFlags, type Context, EXIT } from '../../context.ts';
import { count, counted, duration, parseCount, parseSince } from '../../terminal/format.ts';
import { watched } from './watch.ts';

type Flags = ClaudeFlags & { as?: 'export' | 'nodes' | 'document' | 'turns' };

const ONLY_CLAUDE = { dryRun: '--dry-run', since: '--since', llm: '--llm', budget: '--budget' } as const;

export function registerMemoryImport(memory: Command, context: Context): void {
  const description = "import Claude Code's past conversations, a document, turns, or an export of comet-cc";
  const examples =
    'comet-cc memory import claude --dry-run\ncomet-cc memory import docs/runbook.md\n' +
    'comet-cc memory import memory.jsonl --as export';
  const notes =
    'Importing a document again adds what is new in it and removes what it no longer contains. Turns are JSON lines\n' +
    'of session_id, turn_id, role, content and at. The import continues in the engine when this command is\n' +
    'interrupted; importing twice adds nothing.';
  const what = 'claude, or a file: turns (JSON lines), an export with --as export, or any other text as a document';
  addCommand(memory, 'import', description, examples, notes)
    .argument('<what>', what)
    .addOption(new Option('--as <kind>', 'what the file is: export, document or turns').argParser(parseKind))
    .option('--yes', 'with --as export: trust the origins that it claims; without, nothing in it counts as said by you')
    .option('--project <dir>', 'project of the file (default: the current directory); with claude: only this project')
    .option('--dry-run', 'with claude: print the counts and the cost only')
    .option('--since <d>', 'with claude: only turns since 30m, 12h, 7d, 2w or a date')
    .addOption(new Option('--llm <who>', 'with claude: no model, or the configured one').choices(['local', 'claude']))
    .option('--budget <tokens>', 'with --llm claude: token budget (default 200000)')
    .option('--again', 'also import what was removed from memory; with claude: unchanged transcripts too')
    .jsonAction('document', async (file: string, flags: Flags) => {
      if (file === 'claude') return importClaude(flags, context);
      for (const [key, name] of Object.entries(ONLY_CLAUDE)) {
        if (key in flags) throw new CometError('usage', `${name} is for "import claude" only`);
      }
      const engine = getEngine(context.paths);
      const { as, again, yes: trusted, project = '.' } = flags;
      const input = { file: path.resolve(file), projectDir: resolveDirectory(project), as, again, trusted };
      const progress = ({ importing }: EngineStatus): string =>
        importing === null ? '' : `importing: ${count(importing.done)} of ${count(importing.total)} pieces`;
      const report = await watched(context, flags, progress, () => engine.call('memory/import', input));
      context.term.print(flags, report, () => reportLines(report));
      if (report.kind === 'nodes' && !trusted && report.added > 0) context.term.say(UNTRUSTED);
    });
}

const UNTRUSTED =
  'nothing in it counts as said by you or Claude; if the file is yours: comet-cc memory rollback, then import it with --yes';

const LEFT_OUT = 'skipped because you removed them; --again imports them';

/** An export was named `nodes` once. */
function parseKind(kind: string): string {
  if (['export', 'document', 'turns', 'nodes'].includes(kind)) return kind;
  throw new InvalidArgumentError('Allowed choices are export, document, turns.');
}

function reportLines(report: OperationResults['memory/import']): string[] {
  const { added } = report;
  if (report.kind === 'nodes') {
    const { replaced, unchanged, briefs, pages, tasks, skipped } = report;
    const nodes = `${count(added)} added, ${count(replaced)} replaced, ${count(unchanged)} as they were`;
    const others = `${counted(briefs, 'brief')}, ${counted(pages, 'page')}, ${counted(tasks, 'task')}`;
    return [`${nodes}; ${others}`, ...(skipped > 0 ? [`${count(skipped)} ${LEFT_OUT}`] : [])];
  }
  if (report.kind === 'turns') {
    const { sessions, turns, known, skipped: left } = report;
    return [
      `${counted(turns, 'turn')} of ${counted(sessions, 'session')}: ${count(added)} added, ${count(known)} known, ${count(left)} skipped`,
    ];
  }
  const { unchanged, chunks, outdated, skipped, session_id } = report;
  const lines = [
    `${counted(chunks, 'piece')}: ${count(added)} added, ${count(unchanged)} known, ${count(outdated)} outdated ones removed`,
  ];
  if (skipped > 0) lines.push(`${count(skipped)} ${LEFT_OUT}`);
  if (chunks > 0) lines.push(`verbatim: comet-cc memory restore ${oneLine(session_id)}`);
  return lines;
}

type ClaudeFlags = CommandFlags<'dryRun' | 'again', 'project' | 'since' | 'budget'> & { llm?: 'local' | 'claude' };

export async function importClaude(flags: ClaudeFlags, context: Context): Promise<void> {
  const { env, paths, term } = context;
  const input = claudeInput(flags, env, Date.now());
  const startMs = Date.now();
  const progress = ({ importing }: EngineStatus): string =>
    importing === null ? '' : progressLine(importing, Date.now() - startMs);
  const report = await watched(context, flags, progress, () => getEngine(paths).call('memory/import-claude', input));
  term.print(flags, report, () => claudeLines(report));
  // A memory file that is left out is none of the conversations.
  if (report.problems.some(({ file }) => file.endsWith('.jsonl'))) context.exitCode = EXIT.failed;
  for (const { file, message } of flags.json ? [] : report.problems) term.say(`${oneLine(file)}: ${oneLine(message)}`);
}

/** @throws CometError `usage` */
function claudeInput(flags: ClaudeFlags, env: NodeJS.ProcessEnv, nowMs: number) {
  const { llm = 'local' } = flags;
  if (flags.budget !== undefined && llm !== 'claude') throw new CometError('usage', '--budget goes with --llm claude');
  return {
    claudeDir: path.resolve(claudeDirectory(env)),
    dryRun: flags.dryRun ?? false,
    llm,
    projectDir: flags.project === undefined ? undefined : resolveDirectory(flags.project),
    sinceMs: flags.since === undefined ? undefined : parseSince(flags.since, nowMs),
    budgetTokens: flags.budget === undefined ? undefined : parseCount(flags.budget, '--budget'),
    again: flags.again,
  };
}

/** How far it is by what has been read, with the rate until now and the time that is left at it. */
export function progressLine(
  { done, total, turns = 0 }: { readonly done: number; readonly total: number; readonly turns?: number },
  elapsedMs: number,
): string {
  const share = total === 0 ? 1 : done / total;
  const filled = Math.round(share * 20);
  const bar = `${'█'.repeat(filled)}${'░'.repeat(20 - filled)}`;
  const rate = turns === 0 ? '' : `, ${count((turns * 1_000) / elapsedMs)}/s`;
  const left = done === 0 || share >= 1 ? '' : `, ${duration((elapsedMs / share) * (1 - share))} left`;
  return `${bar} ${Math.floor(share * 100)} %  ${count(turns)} turns${rate}${left}`;
}

export function claudeLines(report: ClaudeReport): string[] {
  const { sessions, turns, added, known, skipped, tokens, model, documents, lines_skipped: lines } = report;
  const would = report.dry_run ? 'would be ' : '';
  const files = counted(documents.files, 'memory file');
  const out = [
    `${counted(report.transcripts, 'transcript')}, ${count(report.unchanged)} imported before; ${counted(sessions, 'session')}, ${counted(turns, 'turn')} read`,
    `${counted(added, 'turn')} ${would}added (about ${counted(tokens, 'token')}), ${count(known)} known, ${count(skipped)} skipped (removed, or said during a pause)`,
    ...(report.agents > 0
      ? [`${counted(report.agents, 'transcript')} of subagents ${would}added below their turns`]
      : []),
    report.dry_run
      ? `${files} of Claude Code would be read`
      : `${files} of Claude Code: ${counted(documents.added, 'piece')} added, ${count(documents.unchanged)} known`,
  ];
  if (report.dry_run) {
    out.push(`cost: none without a model; about ${counted(model.tokens, 'token')} of your limits with --llm claude`);
  } else if (model.batches + model.left > 0) {
    const left = model.left === 0 ? '' : `; ${count(model.left)} written without a model (budget, limits or an error)`;
    out.push(`${counted(model.batches, 'batch', 'batches')} written by the model${left}`);
  }
  const { side: subagents, summary: summaries, broken: damaged, other } = lines;
  const over = Object.entries({ subagents, summaries, damaged, other }).filter(([, value]) => value > 0);
  const named = over.map(([name, value]) => `${name} ${count(value)}`);
  if (named.length > 0) out.push(`lines skipped: ${named.join(', ')}`);
  return out;
}
