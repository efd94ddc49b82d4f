import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Command } from 'commander';
import { listTrustedStores } from '../../certs/index.ts';
import { CometError, getMessage } from '../../common/errors.ts';
import { isRecord, parseJson, toText } from '../../common/text.ts';
import {
  claudeEnv,
  clientEnvironment,
  type DaemonSetup,
  isOurProxy,
  noProxyCovers,
  onSignals,
  otherProxy,
  startDaemon,
  watchGuard,
  withoutOurs,
} from '../../engine/lifecycle/index.ts';
import { claudeDirectory, findOtherApi, isClaude, withSettings } from '../../install/index.ts';
import { addCommand, type CommandFlags, type Context, pageLines, prepareWithProgress } from '../context.ts';

interface Route {
  readonly child: { readonly command: string; readonly args: readonly string[]; readonly env: NodeJS.ProcessEnv };
  /** How to start the daemon again on the same port; null when the command goes without it. */
  readonly setup: DaemonSetup | null;
}

export function registerRun(program: Command, context: Context): void {
  const examples = 'comet-cc run claude\ncomet-cc run -- claude -p "hello" --model haiku';
  addCommand(program, 'run', 'run a command, usually claude, with memory; starts the daemon if needed', examples)
    .usage('[--] <command> [arguments...]')
    .argument('<command>', 'what to run')
    .argument('[arguments...]', 'passed on unchanged')
    .option('--quiet', 'do not say on stderr what memory has before, and kept after')
    .passThroughOptions()
    .action(async (command: string, args: string[], { quiet = false }: CommandFlags<'quiet'>) => {
      const { child, setup } = await route(context, command, args);
      const sinceMs = Date.now();
      const isSession = setup !== null && isClaude(command, context.env['COMET_CC_CLAUDE_BIN'] ?? 'claude');
      const tells = isSession && !quiet && isTold(args, process.stderr.isTTY === true);
      const watching = new AbortController();
      const watch =
        setup === null
          ? undefined
          : watchGuard(setup.paths.guardSocket, async () => void (await startDaemon(setup)), watching.signal);
      const env = tells && (await sayStart(context)) ? { ...child.env, COMET_CC_TOLD: '1' } : child.env;
      context.exitCode = await runCommand({ ...child, env }, context.term.say);
      // An update may have replaced the program meanwhile.
      if (isSession) await finish(context, args, { sinceMs, tells }).catch(() => undefined);
      watching.abort();
      await watch;
    });
}

/** Long for a tail of rules; a model is never waited for. */
const FINISH_MS = 6_000;
const SESSION_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The Agent SDK writes an option and its value as one argument. */
const splitOptions = (args: readonly string[]): string[] => args.flatMap((arg) => arg.split('=', 2));

/** Whether a person reads stderr: with -p it may be collected by a program, and with JSON, which implies -p, it is. */
export function isTold(args: readonly string[], isTerminal: boolean): boolean {
  const words = splitOptions(args);
  if (words.find((_, at) => words[at - 1] === '--output-format')?.includes('json')) return false;
  return isTerminal || !args.some((arg) => arg === '-p' || arg === '--print');
}

/** Says in one line what memory has of this project. False where the engine cannot tell. */
async function sayStart(context: Context): Promise<boolean> {
  const { askProject, startLine } = await import('../../engine/api/status-report.ts');
  const project = await askProject(context, process.cwd(), true);
  context.term.say(project === null ? 'memory gives no answer; see comet-cc status' : startLine(project));
  return project !== null;
}

/** Summarizes the last turns of what ran, and says in one line what was kept. */
async function finish(
  context: Context,
  args: readonly string[],
  { sinceMs, tells }: { readonly sinceMs: number; readonly tells: boolean },
): Promise<void> {
  const { paths, term } = context;
  // The terminal may be gone.
  process.stderr.on('error', () => {});
  const { engineClient } = await import('../../engine/api/client.ts');
  const sessionId = namedSession(args);
  const others = sessionId === undefined ? await runningSessions(claudeDirectory(context.env)) : [];
  const input = { projectDir: process.cwd(), sinceMs, others, ...(sessionId === undefined ? {} : { sessionId }) };
  const session = await engineClient(paths.engineSocket).call('sessions/finish', input, { timeoutMs: FINISH_MS });
  if (session === null || !tells) return;
  const { endLine, offerLine } = await import('../../engine/api/status-report.ts');
  term.say(endLine(session));
  const offer = offerLine(session);
  if (offer !== '') term.say(offer);
  for (const line of await pageLines(context, 'session', session.session_id)) term.say(line);
}

/** Sessions of the Claude Code processes that run now, by the list that these keep. Never rejects. */
export async function runningSessions(claudeDir: string): Promise<string[]> {
  const dir = path.join(claudeDir, 'sessions');
  const names = await readdir(dir).catch(() => []);
  const running = names.filter((name) => name.endsWith('.json') && isRunning(Number.parseInt(name, 10)));
  const read = running.map((name) => readFile(path.join(dir, name), 'utf8').catch(() => ''));
  const sessions = (await Promise.all(read)).map(parseJson).filter(isRecord);
  return sessions.map(({ sessionId }) => toText(sessionId)).filter((id) => SESSION_ID.test(id));
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The session that the arguments name, where it is the one that runs. */
export function namedSession(args: readonly string[]): string | undefined {
  if (args.includes('--fork-session')) return undefined;
  const names = ['--session-id', '--resume', '-r'];
  const words = splitOptions(args);
  return words.find((word, at) => names.includes(words[at - 1] ?? '') && SESSION_ID.test(word));
}

/** Through the daemon where it runs or can be started, otherwise as if comet-cc were not there. */
async function route(context: Context, command: string, args: readonly string[]): Promise<Route> {
  try {
    return await throughDaemon(context, command, args);
  } catch (error) {
    const [why] = getMessage(error).split('\n');
    context.term.say(`comet-cc: ${why}; running ${command} without memory`);
    const bundle = path.join(context.paths.certsDir, 'bundle.pem');
    const env = isOurProxy(context.env['HTTPS_PROXY']) ? withoutOurs(context.env, bundle, null) : context.env;
    return { child: { command, args, env }, setup: null };
  }
}

async function throughDaemon(context: Context, command: string, args: readonly string[]): Promise<Route> {
  const { env, paths, term } = context;
  const setup = await prepareWithProgress(context, {});
  const { status, problem } = await startDaemon(setup);
  term.progress('');
  if (problem !== null) term.say(`comet-cc: ${problem}`);
  const claudes = await claudeEnv(env, paths);
  const rival = otherProxy(status, await context.config(), claudes);
  if (rival !== '') term.say(`comet-cc: ${rival}`);
  const variables = clientEnvironment({ port: status.port, token: setup.token, bundle: setup.bundle }, env);
  if (noProxyCovers(claudes, 'api.anthropic.com'))
    term.say('comet-cc: NO_PROXY covers api.anthropic.com, so nothing will be remembered; take it out of NO_PROXY');
  const child = { command, args, env: { ...env, ...variables } };
  const again = { ...setup, port: status.port, env: { ...setup.env, COMET_CC_PORT: String(status.port) } };
  if (!isClaude(command, env['COMET_CC_CLAUDE_BIN'] ?? 'claude')) return { child, setup: again };
  const file = path.join(paths.runDir, 'claude-settings.json');
  const isTrusted = (await listTrustedStores(paths).catch(() => [])).length > 0;
  const settings = await withSettings(args, { variables, env, cwd: process.cwd(), file, isTrusted });
  if (settings.problem !== '') throw new CometError('config_invalid', settings.problem);
  const other = await findOtherApi(env);
  if (other !== undefined) term.say(`comet-cc: ${other}; unset it, and name a gateway in COMET_CC_UPSTREAM instead`);
  return { child: { ...child, args: settings.args }, setup: again };
}

const PASSED: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];
/** A terminal sends these to the whole foreground group: passing them on would deliver them twice. */
const FROM_TERMINAL: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGQUIT']);

/**
 * Runs a command on this process's own terminal and passes signals on.
 * @returns its exit code; 128 + n when signal n ended it, 127 when it is not found, 126 when it cannot be run
 */
export async function runCommand({ command, args, env }: Route['child'], say: (text: string) => void): Promise<number> {
  const { runInForeground } = await import('../../common/run-process.ts');
  let stopPassing: () => void = () => {};
  const { exitCode, failure } = await runInForeground(command, args, env, (send) => {
    stopPassing = passSignals(send);
  });
  stopPassing();
  if (failure === null) return exitCode;
  const missing = 'was not found; if it is an alias or a function of your shell, name its file';
  say(`comet-cc: ${command} ${failure === 'ENOENT' ? missing : `cannot be run (${failure})`}`);
  return failure === 'ENOENT' ? 127 : 126;
}

function passSignals(send: (signal: NodeJS.Signals) => void): () => void {
  const atTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY);
  return onSignals(PASSED, (signal) => {
    if (!atTerminal || !FROM_TERMINAL.has(signal)) send(signal);
  });
}
