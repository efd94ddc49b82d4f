import os from 'node:os';
import type { Command } from 'commander';
import { amount, clip, formatCount, localTime, oneLine } from '../../common/text.ts';
import type { Paint, ProjectSummary } from '../../engine/api/index.ts';
import {
  askProject,
  guardStatus,
  overrideLine,
  pauseLines,
  type StatusReport,
  savedLine,
  statusReport,
  stoppedLine,
} from '../../engine/api/status-report.ts';
import { addCommand, type Context, EXIT, pageLines } from '../context.ts';
import { count, duration } from '../terminal/format.ts';

export function registerStatus(program: Command, context: Context): void {
  const description =
    'show whether memory is on here, what it holds and saved, and what is wrong; exit code 3 when it is not running';
  addCommand(program, 'status', description, 'comet-cc status')
    .option('--long', 'show the internals too')
    .jsonAction('document', async (flags: { json?: boolean; long?: boolean }) => {
      const { paths, term } = context;
      const guard = await guardStatus(paths.guardSocket);
      const dir = process.cwd();
      const project = guard?.engine.state === 'healthy' ? await askProject(context, dir) : null;
      const report = await statusReport(context, guard);
      const { claudeEnv, otherProxy } = await import('../../engine/lifecycle/index.ts');
      // `doctor` says what is wrong with settings.
      const config = await context.config().catch(() => null);
      const env = await claudeEnv(context.env, paths);
      const other_proxy = guard === null || config === null ? '' : otherProxy(guard, config, env);
      const status: FullStatus = { ...report, project: project === null ? null : { dir, ...project }, other_proxy };
      if (!status.running) context.exitCode = EXIT.daemonDown;
      if (!status.running && !flags.json) return term.say(stoppedLine(status));
      const lines = (): string[] => [
        ...statusLines(status, term.paint, Date.now()),
        ...(flags.long ? ['', ...internalLines(status, term.paint, Date.now())] : []),
      ];
      term.print(flags, status, lines);
      if (!flags.json) (await pageLines(context, 'now')).forEach(term.out);
    });
}

/** The document of `status --json`. */
export type FullStatus = StatusReport & {
  /** Of the current directory; null where the engine cannot be asked. */
  readonly project: (ProjectSummary & { readonly dir: string }) | null;
  /** What the daemon uses instead of the proxy that is named here, '' where it uses that. */
  readonly other_proxy: string;
};

const TITLE_CHARS = 60;
const PROBLEMS = 5;
const MODES = { on: 'on', private: 'reads, but keeps nothing', off: 'paused' } as const;

export function statusLines(status: FullStatus, paint: Paint, nowMs: number): string[] {
  const { project, engine, savings, paused, reindex, importing } = status;
  const healthy = engine.state === 'healthy';
  const isOpen = !status.problems.some(({ file }) => file === 'memory');
  /** All else is zeros. */
  const isKnown = healthy && isOpen && !status.problems.some(({ file }) => file === 'engine');
  const isOn = healthy && isOpen && (project?.mode ?? 'on') === 'on';
  const since = isOn ? `, since ${localTime(nowMs - status.uptime_ms, nowMs)}` : '';
  const rows: Row[] = [];
  if (project === null) {
    const off = `off: ${healthy ? 'the store is not open' : 'the engine does not run'}`;
    const state = healthy && isOpen ? paint('green', 'on') : paint('red', off);
    rows.push(['memory', `${state}${since}`]);
    if (isKnown) rows.push(['memories', `${count(status.nodes)} in all`]);
  } else {
    const state = paint(project.mode === 'on' ? 'green' : 'yellow', MODES[project.mode]);
    rows.push(['memory', `${state} for ${tilde(project.dir)}${since}`]);
    rows.push(['memories', memoriesLine(status, project, nowMs)]);
    if (project.open > 0) rows.push(['open', formatCount(project.open, 'open item')]);
  }
  if (isKnown) rows.push(['context', savedLine(savings.today, 'today')]);
  if (savings.week.original > savings.today.original) rows.push(['', savedLine(savings.week, 'this week')]);
  if (isKnown) rows.push(['model', modelLine(status)]);
  if (status.share) rows.push(['share', shareLine(status.share, nowMs)]);
  const overrides = overrideLine(status);
  const notes = pauseLines(paused);
  if (overrides !== '') notes.push(overrides);
  if (reindex !== null) {
    const total = formatCount(reindex.total, 'memory', 'memories');
    notes.push(`rebuilding the index: ${count(reindex.done)} of ${total}; recall continues`);
  }
  if (importing !== null)
    notes.push(`importing: ${Math.floor((100 * importing.done) / Math.max(1, importing.total))} %`);
  if (status.llm.deferred > 0) notes.push(deferredLine(status.llm, nowMs));
  notes.push(...spentLines(status.budget));
  if (healthy && status.tunnels.bypassing > 0) {
    const opened = `${formatCount(status.tunnels.bypassing, 'connection')} opened while memory was off`;
    notes.push(`${opened}: without it until two minutes after an answer`);
    notes.push('  sooner: end that session of Claude Code and resume it');
  }
  const problems = getProblems(status).flatMap(({ text, fix }) => {
    return [paint('yellow', `problem: ${text}`), ...(fix === '' ? [] : [`  fix: ${fix}`])];
  });
  return [...rowLines(rows, paint), ...notes.map((line) => paint('yellow', line)), ...problems];
}

type Row = readonly [name: string, text: string];

function rowLines(rows: readonly Row[], paint: Paint): string[] {
  return rows.map(([name, text]) => `${paint('dim', name.padEnd(9))} ${text}`);
}

function tilde(dir: string): string {
  const home = os.homedir();
  return oneLine(dir === home || dir.startsWith(`${home}/`) ? `~${dir.slice(home.length)}` : dir);
}

function memoriesLine({ nodes: all }: FullStatus, { nodes, newest }: ProjectSummary, nowMs: number): string {
  const others = all > nodes ? `, ${count(all)} in all` : '';
  if (newest === null) return `none of this project yet${others}`;
  const title = clip(oneLine(newest.title), TITLE_CHARS);
  return `${count(nodes)} of this project${others}; the newest, ${localTime(Date.parse(newest.at), nowMs)}: "${title}"`;
}

function modelLine({ llm, budget }: FullStatus): string {
  if (llm.backend === 'local' || llm.backend === 'off') return `${llm.backend}: memory makes no model calls`;
  const most = budget.daily_tokens === 0 ? '' : ` of ${amount(budget.daily_tokens)}`;
  const calls = `${formatCount(llm.calls_today, 'call')} today${llm.running > 0 ? `, ${llm.running} running now` : ''}`;
  return `${llm.backend}: ${calls}, ${amount(llm.tokens_today)}${most} tokens (models.dailyTokens)${sessionPart(budget)}`;
}

function sessionPart({ sessions: [newest], session_tokens: most }: FullStatus['budget']): string {
  if (newest === undefined || most === 0) return '';
  return `, ${amount(newest.tokens)} of ${amount(most)} in the newest session (models.sessionTokens)`;
}

function shareLine(report: NonNullable<FullStatus['share']>, nowMs: number): string {
  const { url, scope, machines, pulled_at: at } = report;
  if (report.left) return oneLine(`has ended; what was published is still in ${url}: comet-cc share leave`);
  const read = at === null ? 'not read yet' : `read ${localTime(Date.parse(at), nowMs)}`;
  return oneLine(`${url}, scope ${scope}, ${formatCount(machines.length, 'other machine')}, ${read}`);
}

/** Sessions whose memories rules write, as their tokens are used. */
function spentLines({ sessions, session_tokens: most }: FullStatus['budget']): string[] {
  const spent = sessions.filter((each) => each.spent);
  const [newest] = spent;
  if (newest === undefined) return [];
  const others = spent.length > 1 ? ` and ${formatCount(spent.length - 1, 'other session')}` : '';
  const name = newest.title ? `"${clip(oneLine(newest.title), TITLE_CHARS)}"` : oneLine(newest.session_id);
  return [
    `session ${name}${others} used the ${amount(most)} tokens allowed for a session; rules write its memories now`,
    '  more: comet-cc config set models.sessionTokens NUMBER && comet-cc restart',
  ];
}

function deferredLine({ deferred, deferred_because, deferred_until }: FullStatus['llm'], nowMs: number): string {
  const until = deferred_until === null ? '' : ` until ${localTime(Date.parse(deferred_until), nowMs)}`;
  const verb = deferred === 1 ? 'waits' : 'wait';
  return `${formatCount(deferred, 'summary', 'summaries')} ${verb} for the model${until}: ${oneLine(deferred_because)}`;
}

function getProblems(status: FullStatus): { readonly text: string; readonly fix: string }[] {
  const { engine, llm, trimming_off: off } = status;
  const lines = [...status.notes, ...status.problems].map(({ file, message }) => `${file}: ${oneLine(message)}`);
  const state = engine.state.replaceAll('_', ' ');
  const found: { text: string; fix: string }[] = [];
  const add = (text: string, fix = 'comet-cc doctor'): void => void found.push({ text, fix });
  if (engine.state !== 'healthy') add(`the engine's state is ${state}; Claude Code continues without memory`);
  if (status.other_build !== '') add(status.other_build, 'comet-cc restart');
  if (status.other_proxy !== '') add(status.other_proxy, '');
  if (llm.last_error !== '') add(`last model error: ${oneLine(llm.last_error)}`);
  const [newest] = off;
  if (newest) add(`trimming is off in ${formatCount(off.length, 'session')}: ${oneLine(newest.because)}`, '');
  for (const line of lines.slice(0, PROBLEMS)) add(line);
  if (lines.length > PROBLEMS) add(`and ${formatCount(lines.length - PROBLEMS, 'more problem')}`);
  return found;
}

export function internalLines(status: FullStatus, paint: Paint, nowMs: number): string[] {
  const { requests, recalls, tokens, queue, llm, engine, sensor, dream } = status;
  const modelShare = `, asked about ${count(sensor.asked)} of ${formatCount(sensor.turns, 'turn')} whether the topic shifted`;
  const { failed, others_missed: others = 0 } = recalls;
  const missed = others > 0 ? `; ${formatCount(others, 'other lookup')} late or failed` : '';
  const late = `${count(recalls.late_delivered)} late and sent with the next request, ${count(recalls.late_lost)} late and not sent`;
  const retried = status.healed > 0 ? `, ${count(status.healed)} retried after a refusal` : '';
  const passed = `${count(requests.rewritten)} rewritten, ${count(requests.passed_through)} passed through`;
  const unchanged = 'passed through unchanged after an error';
  const failures = failed > 0 ? `, ${count(failed)} failed` : '';
  const own = count(tokens.own);
  const price = status.savings.week.net_saved_usd;
  const saved = `$${Math.abs(price).toFixed(2)} ${price < 0 ? 'more' : 'less'}`;
  const summaries = formatCount(queue.compacter, 'summary', 'summaries');
  const writes = formatCount(queue.indexer, 'index write');
  const rows: Row[] = [
    ['proxy', `${status.proxy.url}, up ${duration(status.uptime_ms)}, process ${status.pid}`],
    ['engine', `${engine.state.replaceAll('_', ' ')}, ${formatCount(engine.restarts, 'restart')}`],
    ['upstream', status.upstream],
    ['requests', `${count(requests.total)}: ${passed}, ${count(requests.failed_open)} ${unchanged}${retried}`],
    ['recalls', `${count(recalls.asked)}: ${count(recalls.in_time)} in time, ${late}${failures}${missed}`],
    ['tokens', `${count(tokens.original)} received, ${count(tokens.sent)} sent, ${own} used by memory itself`],
    ['price', `${saved} at API prices this week, memory's own calls included`],
    ['queues', `${formatCount(queue.sensor, 'topic check')}, ${summaries}, ${writes} waiting`],
    ['model', `$${llm.cost_usd_today.toFixed(2)} at API prices today${sensor.turns === 0 ? '' : modelShare}`],
  ];
  const shell = status.environment.join(', ');
  if (shell !== '') rows.push(['settings', `${shell} from the shell that started it`]);
  if (dream !== null) rows.push(['dream', dreamLine(dream, nowMs)]);
  const off = status.trimming_off.map(
    ({ session_id, title, because }) =>
      `trimming is off in session ${title ? `"${oneLine(title)}"` : oneLine(session_id)}: ${oneLine(because)}`,
  );
  return [...rowLines(rows, paint), ...off];
}

function dreamLine({ at, merged, groups, pruned, left, running }: NonNullable<FullStatus['dream']>, nowMs: number) {
  const next = left === 0 ? '' : `, ${formatCount(left, 'memory', 'memories')} left for the next`;
  const done = `${count(merged)} merged, ${count(groups)} grouped, ${count(pruned)} pruned${next}`;
  return `${running ? 'running; the last one ' : ''}${localTime(Date.parse(at), nowMs)}: ${done}`;
}
