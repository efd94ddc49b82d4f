import type { Command } from 'commander';
import { oneLine } from '../../common/text.ts';
import type { Paint } from '../../engine/api/index.ts';
import { guardStatus, pauseLines, type StatusReport, savedLine, statusReport } from '../../engine/api/status-report.ts';
import { type Context, EXIT } from '../context.ts';
import { count, duration } from '../terminal/format.ts';
import { refreshed } from '../terminal/watch.ts';

export function registerStatus(program: Command, context: Context): void {
  program
    .command('status')
    .description('show what the daemon does; exit code 3 when it is not running')
    .option('--watch', 'refresh every two seconds until Ctrl-C')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc status --json')
    .action(async (flags: { json?: boolean; watch?: boolean }) => {
      if (flags.watch) return refreshed(context.term, () => watchedLines(context));
      const report = await statusReport(context, await guardStatus(context.paths.guardSocket));
      if (flags.json) context.term.json(report);
      else if (report.running) for (const line of statusLines(report, context.term.paint)) context.term.out(line);
      else context.term.say('comet-cc is not running; start it with: comet-cc start');
      if (!report.running) process.exitCode = EXIT.daemonDown;
    });
}

async function watchedLines(context: Context): Promise<string[]> {
  const report = await statusReport(context, await guardStatus(context.paths.guardSocket));
  return report.running ? statusLines(report, context.term.paint) : ['comet-cc is not running'];
}

export function statusLines(report: StatusReport, paint: Paint): string[] {
  const { requests, tokens, queue, llm, engine } = report;
  const healthy = engine.state === 'healthy';
  const share =
    tokens.original > 0 ? ` (${Math.round((100 * (tokens.original - tokens.sent)) / tokens.original)} %)` : '';
  const rows: [string, string][] = [
    ['proxy', `${report.proxy.url}, up ${duration(report.uptime_ms)}, process ${report.pid}`],
    ['engine', `${paint(healthy ? 'green' : 'red', engine.state)}, restarts ${engine.restarts}`],
    ['upstream', report.upstream],
    [
      'requests',
      `${count(requests.total)}: ${count(requests.rewritten)} rewritten, ${count(requests.passed_through)} passed through, ${count(requests.failed_open)} passed through unchanged after an error${report.healed > 0 ? `, ${count(report.healed)} retried after a refusal` : ''}`,
    ],
    [
      'tokens',
      `${count(tokens.original)} received, ${count(tokens.sent)} sent${share}, net saved ${count(tokens.net_saved)}`,
    ],
    ['savings', `${savedLine(report.savings.today, 'today')}; ${savedLine(report.savings.week, 'this week')}`],
    [
      'memory',
      `${count(report.nodes)} nodes; queued: sensor ${queue.sensor}, summarizer ${queue.compacter}, indexer ${queue.indexer}`,
    ],
    [
      'model',
      `${llm.backend}, today ${count(llm.calls_today)} calls, ${count(llm.tokens_today)} tokens, $${llm.cost_usd_today.toFixed(2)}`,
    ],
  ];
  if (report.dream !== null) rows.push(['dream', dreamLine(report.dream)]);
  const lines = rows.map(([name, text]) => `${paint('dim', name.padEnd(9))} ${text}`);
  if (report.other_build !== '') lines.push(paint('yellow', `${report.other_build}; comet-cc restart`));
  for (const line of pauseLines(report.paused)) lines.push(paint('yellow', line));
  if (report.reindex !== null) {
    const { done, total } = report.reindex;
    lines.push(paint('yellow', `rebuilding the index: ${count(done)} of ${count(total)} nodes; recall continues`));
  }
  if (llm.deferred > 0) lines.push(paint('yellow', deferredLine(llm)));
  if (llm.last_error !== '') lines.push(paint('yellow', `last model error: ${oneLine(llm.last_error)}`));
  for (const off of report.trimming_off) {
    lines.push(paint('yellow', `trimming is off in session ${oneLine(off.session_id)}: ${oneLine(off.because)}`));
  }
  for (const problem of report.problems) lines.push(paint('yellow', `${problem.file}: ${oneLine(problem.message)}`));
  if (!healthy) lines.push('Claude Code continues without memory; run comet-cc doctor');
  return lines;
}

function dreamLine({ at, merged, groups, pruned, left, running }: NonNullable<StatusReport['dream']>): string {
  const next = left === 0 ? '' : `, ${count(left)} memories left for the next`;
  const done = `${count(merged)} merged, ${count(groups)} grouped, ${count(pruned)} pruned${next}`;
  return `${running ? 'running; the last one ' : ''}${at.slice(0, 16).replace('T', ' ')} UTC: ${done}`;
}

function deferredLine({ deferred, deferred_because, deferred_until }: StatusReport['llm']): string {
  const until = deferred_until === null ? '' : `, until ${deferred_until.slice(0, 16).replace('T', ' ')} UTC`;
  return `${count(deferred)} compactions wait for the model${until}: ${oneLine(deferred_because)}`;
}
