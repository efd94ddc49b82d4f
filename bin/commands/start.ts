import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { type Command, InvalidArgumentError } from 'commander';
import { CometError } from '../../common/errors.ts';
import { overrideLine, statusReport, stoppedLine } from '../../engine/api/index.ts';
import { OPENING, STORE } from '../../engine/index.ts';
import { guardStatus, prepareDaemon, type StartResult, startDaemon, stopDaemon } from '../../engine/lifecycle/index.ts';
import { addCommand, type Context, prepareWithProgress } from '../context.ts';

type Flags = { readonly port?: number; readonly foreground?: boolean; readonly json?: boolean };

export function registerStart(program: Command, context: Context): void {
  const example = 'comet-cc start && eval "$(comet-cc env)"';
  addCommand(program, 'start', 'start the daemon; does nothing when it is running', example)
    .option('--foreground', 'stay in this terminal instead of the background')
    .option('--port <n>', 'port to listen on, loopback only', parsePort)
    .jsonAction('document', async ({ foreground = false, json, ...flags }: Flags) => {
      const started = await startDaemon({ ...(await prepareWithProgress(context, flags)), foreground });
      const { child } = started;
      const ended = child === null ? null : getExitCode(child);
      await reportStart(context, started, { ...flags, json }).catch((error: unknown) => {
        child?.kill();
        throw error;
      });
      if (ended !== null) context.exitCode = await ended;
    });
}

/** Says what runs and how to use it. @throws CometError `daemon_unhealthy` when memory does not work */
async function reportStart(
  context: Context,
  started: StartResult,
  flags: { readonly port?: number; readonly json: boolean | undefined },
): Promise<void> {
  const { term } = context;
  const { status, fresh, problem } = started;
  if (flags.port !== undefined && flags.port !== 0 && flags.port !== status.port)
    term.say(`comet-cc: already running on port ${status.port}; to move it: comet-cc restart --port ${flags.port}`);
  const report = await statusReport(context, status);
  if (flags.json) term.json(report);
  else {
    term.out(`comet-cc runs${fresh ? '' : ' already'} on http://127.0.0.1:${status.port} (process ${status.pid})`);
    term.out('Claude Code with it:   comet-cc run claude');
    term.out('In this shell:         eval "$(comet-cc env)"');
    const off = report.problems.find(({ file, message }) => file === STORE && message !== OPENING);
    const notes = [overrideLine(report), off === undefined ? '' : `memory is off: ${off.message}`];
    for (const note of notes) if (note !== '') term.say(note);
  }
  if (problem !== null) throw new CometError('daemon_unhealthy', problem);
}

/** Once it has ended, also where it did before. */
async function getExitCode(child: ChildProcess): Promise<number> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode ?? 1;
}

function parsePort(text: string): number {
  const port = Number(text);
  if (text.trim() !== '' && Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new InvalidArgumentError('expected an integer from 0 to 65535.');
}

export function registerStop(program: Command, context: Context): void {
  const description = 'stop memory once running requests have ended (at most 30 s); open sessions continue without it';
  addCommand(program, 'stop', description, 'comet-cc stop')
    .option('--now', 'end the port too, which open sessions still use')
    .action(async ({ now = false }: { now?: boolean }) => {
      const { term, paths } = context;
      term.progress('stopping…');
      const stopped = await stopDaemon(paths, { keepsPort: !now });
      if (stopped === null) return term.out('comet-cc is not running');
      if (!now && stopped.pass_through) return term.out(stoppedLine(await statusReport(context, stopped)));
      term.out(`comet-cc stopped (it ran on port ${stopped.port})`);
      if (now) term.say('Sessions that still use it wait for about three minutes; comet-cc start brings it back.');
    });
}

export function registerRestart(program: Command, context: Context): void {
  addCommand(program, 'restart', 'stop and start on the same port; sessions that use it continue', 'comet-cc restart')
    .option('--port <n>', 'move to another port', parsePort)
    .jsonAction('document', async ({ json, ...flags }: Omit<Flags, 'foreground'>) => {
      const port = flags.port ?? (await guardStatus(context.paths.guardSocket))?.port;
      // What keeps a daemon from starting must be said while the old one still runs.
      const setup = await prepareDaemon(context, { ...flags, ...(port === undefined ? {} : { port }) });
      context.term.progress('restarting…');
      await stopDaemon(context.paths, { restarts: true });
      await reportStart(context, await startDaemon(setup), { ...flags, json });
    });
}
