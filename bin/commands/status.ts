import type { Command } from 'commander';
import { oneLine } from '../../common/text.ts';
import type { Paint } from '../../engine/api/index.ts';
import {
  guardStatus,
  pauseLines,
  type StatusReport,
  savedLine,
  statusReport,
  stoppedLine,
} from '../../engine/api/status-report.ts';
import { addCommand, type Context, EXIT } from '../context.ts';
import { count, duration } from '../terminal/format.ts';
import { refreshed } from '../terminal/watch.ts';

export function registerStatus(program: Command, context: Context): void {
  const description = 'show what the daemon does; exit code 3 when it is not running';
  addCommand(program, 'status', description, 'comet-cc status --json')
    .option('--watch', 'refresh every two seconds until Ctrl-C')
    .option('--json', 'print one JSON document')
    .action(async (flags: { json?: boolean; watch?: boolean }) => {
      const { paths, term } = context;
      const read = async () => statusReport(context, await guardStatus(paths.guardSocket));
      const lines = (report: StatusReport): string[] =>
        report.running ? statusLines(report, term.paint) : [stoppedLine(report)];
      if (flags.watch) return refreshed(term, async () => lines(await read()));
      const report = await read();
      if (!report.running) process.exitCode = EXIT.daemonDown;
      if (report.running || flags.json) return term.print(flags, report, () => lines(report));
      term.say(stoppedLine(report));
    });
}

export function statusLines(report: StatusReport, paint: Paint): string[] {
  const { requests, recalls, tokens, queue, llm, engine } = report;
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
    ['recalls', recallsLine(recalls)],
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
      `${llm.backend}, today ${count(llm.calls_today)} calls, ${count(llm.tokens_today)} tokens, $${llm.cost_usd_today.toFixed(2)}${sensorText(report.sensor)}`,
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
  for (const { file, message } of [...report.notes, ...report.problems]) {
    lines.push(paint('yellow', `${file}: ${oneLine(message)}`));
  }
  if (!healthy) lines.push('Claude Code continues without memory; run comet-cc doctor');
  return lines;
}

function recallsLine({ asked, in_time, late_delivered, late_lost, failed }: StatusReport['recalls']): string {
  const late = `${count(late_delivered)} late and sent with the next request, ${count(late_lost)} late and lost`;
  return `${count(asked)}: ${count(in_time)} in time, ${late}${failed > 0 ? `, ${count(failed)} failed` : ''}`;
}

function sensorText({ turns, asked }: StatusReport['sensor']): string {
  return turns === 0 ? '' : `; asked about ${count(asked)} of ${count(turns)} turns whether the topic shifted`;
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
