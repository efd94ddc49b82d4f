import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { Config } from '../common/config.ts';
import { CometError, type ErrorCode, getMessage } from '../common/errors.ts';
import { getHome, homePaths, resolveDirectory } from '../common/paths.ts';
import { lowestOrigin, type Origin } from '../common/turn.ts';
import { type EngineClient, engineClient, getEngine, retryingClient } from '../engine/api/client.ts';
import type { DaemonSetup, Context as EngineContext } from '../engine/lifecycle/index.ts';
import { createTerm, type Stream, type Term } from './terminal/term.ts';

export interface Context extends EngineContext {
  readonly term: Term;
  /**
   * The engine's API for a command that reads. Where there is memory and no daemon, it starts one as `run` does.
   * @throws from `call`: as `getEngine`; `daemon_down` also where the daemon cannot be started
   */
  readonly engine: EngineClient;
  /** For text that brings its own newlines. */
  readonly stdout: Stream;
  readonly stderr: Stream;
  /** Of a command that does not throw. */
  exitCode: number;
}

export function createContext({ env, stdout, stderr }: Pick<Context, 'env' | 'stdout' | 'stderr'> = process): Context {
  return {
    env,
    paths: homePaths(getHome(env)),
    term: createTerm(stdout, stderr, env),
    stdout,
    stderr,
    exitCode: EXIT.done,
    get engine() {
      return startedEngine(this, () => existsSync(this.paths.nodesDir));
    },
    // The schema takes 70 ms to load; commands that only ask the daemon do not need it.
    config: async (flags = {}) => (await import('../common/config.ts')).loadConfig(env, flags).config,
  };
}

/** As `Context.engine`, for a command that needs a daemon in any case. */
export function startedEngine(context: Context, isWorthIt = (): boolean => true): EngineClient {
  return retryingClient(getEngine(context.paths), async (error) => {
    if (!isWorthIt()) throw error;
    const { prepareDaemon, startDaemon } = await import('../engine/lifecycle/index.ts');
    context.term.progress('starting…');
    try {
      await startDaemon(await prepareDaemon(context, {}));
    } catch (cause) {
      const problem = `the daemon is not running and cannot be started: ${getMessage(cause)}`;
      throw new CometError('daemon_down', problem, { cause });
    }
  });
}

/** Prepares a start and says on a terminal what takes its time; the caller clears the line once the daemon runs. */
export async function prepareWithProgress(context: Context, flags: Partial<Config>): Promise<DaemonSetup> {
  const { paths, term } = context;
  const isNew = !existsSync(paths.certsDir);
  if (isNew) term.progress('comet-cc, first run, 1 of 2: creating certificates…');
  const { prepareDaemon } = await import('../engine/lifecycle/index.ts');
  const setup = await prepareDaemon(context, flags);
  term.progress(
    isNew ? 'comet-cc, first run, 2 of 2: opening memory and loading the embedder…' : 'comet-cc: starting…',
  );
  return setup;
}

/** The exit codes that other programs rely on. */
export const EXIT = { done: 0, failed: 1, usage: 2, daemonDown: 3, notFound: 4 } as const;

const EXIT_CODES: Partial<Record<ErrorCode, number>> = {
  ...{ usage: EXIT.usage, input_invalid: EXIT.usage, ambiguous_id: EXIT.usage },
  ...{ daemon_down: EXIT.daemonDown, not_found: EXIT.notFound },
};

export function getExitCode(error: unknown): number {
  return (error instanceof CometError ? EXIT_CODES[error.code] : undefined) ?? EXIT.failed;
}

/** Ends output of memory with a line that tells capture its origin: without one, it counts as external. */
export async function printOrigin(
  { env, term, engine }: Context,
  sources: readonly { readonly origin: Origin }[],
): Promise<void> {
  if (!env['CLAUDECODE'] || term.isTerminal) return;
  const { sealDigest } = await import('../engine/api/index.ts');
  const origin = lowestOrigin(['user', ...sources.map((source) => source.origin)]);
  term.out(await engine.call('nodes/seal', { digest: sealDigest(term.printed()), origin }));
}

/**
 * For what only the user may consent to. Claude Code sets the variable for Claude's commands, which a page that Claude
 * read may have asked for.
 * @throws CometError `usage` where Claude runs it
 */
export function requireUser({ env }: Context): void {
  if (env['CLAUDECODE']) throw new CometError('usage', 'run it in your own terminal; Claude cannot consent to it');
}

export async function projectKey({ paths }: Context, directory: string): Promise<string> {
  const { createProjectOf, openJoinedFolders } = await import('../memory/index.ts');
  return createProjectOf(Date.now, openJoinedFolders(paths.projectsFile))(resolveDirectory(directory));
}

/** Prints a note if the folder does not exist here: the path may be mistyped, or of a container. */
export function noteFolder({ term }: Context, directory: string): void {
  const folder = resolveDirectory(directory);
  if (!existsSync(folder)) term.say(`there is no folder ${folder} here; this applies only to sessions that run in it`);
}

const ADDRESS_MS = 1_000;

/** Where the dashboard shows it, in one line; none where it does not listen, and none for Claude Code. */
export async function pageLines({ env, paths }: Context, view: string, id = ''): Promise<string[]> {
  if (env['CLAUDECODE']) return [];
  const call = engineClient(paths.engineSocket).call('ui/address', {}, { timeoutMs: ADDRESS_MS });
  const { url } = await call.catch(() => ({ url: null }));
  return url === null ? [] : [`${'page'.padEnd(9)} ${url}#/${view}${id === '' ? '' : `/${encodeURIComponent(id)}`}`];
}

/** What an action is given of its options: words of their own, and those that take a text. */
export type CommandFlags<Words extends string = never, Texts extends string = never> = {
  readonly [name in Words | 'json' | 'yes']?: boolean;
} & { readonly [name in Texts]?: string };

/** A command with its help: `notes`, then `examples`, which has one on each line. */
export function addCommand(parent: Command, name: string, description: string, examples: string, notes = '') {
  const [title, lines] = [examples.includes('\n') ? 'Examples' : 'Example', examples.replaceAll('\n', '\n  ')];
  const help = `${notes === '' ? '' : `\n${notes}\n`}\n${title}:\n  ${lines}`;
  const command = parent.command(name).description(description).addHelpText('after', help);
  /** Adds `--json` as the last option. */
  const jsonAction = (printed: 'array' | 'document', run: Parameters<Command['action']>[0]): Command =>
    command.option('--json', `print one JSON ${printed}`).action(run);
  return Object.assign(command, { jsonAction });
}
