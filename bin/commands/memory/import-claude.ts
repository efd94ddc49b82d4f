import os from 'node:os';
import path from 'node:path';
import { CometError } from '../../../common/errors.ts';
import { resolveDirectory } from '../../../common/paths.ts';
import { oneLine } from '../../../common/text.ts';
import type { ClaudeReport, OperationInput } from '../../../engine/api/index.ts';
import { engineOf } from '../../../engine/api/index.ts';
import type { Context } from '../../context.ts';
import { count, duration, parseCount, parseSince } from '../../terminal/format.ts';
import { watched } from './watch.ts';

const LONGEST_MS = 12 * 3_600_000;

export interface ClaudeFlags {
  readonly project?: string;
  readonly since?: string;
  readonly llm?: string;
  readonly budget?: string;
  readonly dryRun?: boolean;
  readonly again?: boolean;
  readonly json?: boolean;
}

export async function importClaude(flags: ClaudeFlags, context: Context): Promise<void> {
  const { env, paths, term } = context;
  const input = claudeInput(flags, env, Date.now());
  const run = () => engineOf(paths).call('memory/import-claude', input, { timeoutMs: LONGEST_MS });
  if (flags.json) return term.json(await run());
  const startMs = Date.now();
  const report = await watched(
    context,
    ({ importing }) => (importing === null ? '' : progressLine(importing, Date.now() - startMs)),
    run,
  );
  for (const line of claudeLines(report)) term.out(line);
  for (const { file, message } of report.problems) term.say(`${oneLine(file)}: ${oneLine(message)}`);
}

/** @throws CometError `usage` */
export function claudeInput(
  flags: ClaudeFlags,
  env: NodeJS.ProcessEnv,
  nowMs: number,
): OperationInput<'memory/import-claude'> {
  const { llm = 'local' } = flags;
  if (llm !== 'local' && llm !== 'claude') throw new CometError('usage', `--llm is local or claude (got "${llm}")`);
  if (flags.budget !== undefined && llm !== 'claude') throw new CometError('usage', '--budget goes with --llm claude');
  return {
    claudeDir: path.resolve(env['CLAUDE_CONFIG_DIR'] || path.join(env['HOME'] || os.homedir(), '.claude')),
    dryRun: flags.dryRun ?? false,
    llm,
    ...(flags.project === undefined ? {} : { projectDir: resolveDirectory(flags.project) }),
    ...(flags.since === undefined ? {} : { sinceMs: parseSince(flags.since, nowMs) }),
    ...(flags.budget === undefined ? {} : { budgetTokens: parseCount(flags.budget, '--budget') }),
    ...(flags.again ? { again: true } : {}),
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
  const out = [
    `${count(report.transcripts)} transcripts, ${count(report.unchanged)} imported before; ${count(sessions)} sessions, ${count(turns)} turns read`,
    `${count(added)} turns ${would}added (about ${count(tokens)} tokens), ${count(known)} known, ${count(skipped)} skipped (removed, or said during a pause)`,
    ...(report.agents > 0 ? [`${count(report.agents)} transcripts of subagents ${would}added below their turns`] : []),
    report.dry_run
      ? `${count(documents.files)} memory files of Claude Code would be read`
      : `${count(documents.files)} memory files of Claude Code: ${count(documents.added)} pieces added, ${count(documents.unchanged)} known`,
  ];
  if (report.dry_run) {
    out.push(`cost: none without a model; about ${count(model.tokens)} tokens of your limits with --llm claude`);
  } else if (model.batches + model.left > 0) {
    const left = model.left === 0 ? '' : `; ${count(model.left)} written without a model (budget or limits)`;
    out.push(`${count(model.batches)} batches written by the model${left}`);
  }
  const over = Object.entries({
    subagents: lines.side,
    summaries: lines.summary,
    damaged: lines.broken,
    other: lines.other,
  });
  const named = over.filter(([, value]) => value > 0).map(([name, value]) => `${name} ${count(value)}`);
  if (named.length > 0) out.push(`lines skipped: ${named.join(', ')}`);
  return out;
}
