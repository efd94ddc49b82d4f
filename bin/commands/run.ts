import path from 'node:path';
import type { Command } from 'commander';
import { messageOf } from '../../common/errors.ts';
import type { DaemonSetup } from '../../engine/lifecycle/index.ts';
import { clientEnvironment, isOurProxy, noProxyCovers, withoutOurs } from '../../engine/lifecycle/index.ts';
import { isClaude, withSettings } from '../../install/index.ts';
import type { Context } from '../context.ts';
import type { ChildCommand } from './run-child.ts';

interface Route {
  readonly child: ChildCommand;
  /** How to start the daemon again on the same port; null when the command goes without it. */
  readonly setup: DaemonSetup | null;
}

export function registerRun(program: Command, context: Context): void {
  program
    .command('run')
    .description('run a command, usually claude, with memory; starts the daemon if needed')
    .usage('[--] <command> [arguments...]')
    .argument('<command>', 'what to run')
    .argument('[arguments...]', 'passed on unchanged')
    .passThroughOptions()
    .addHelpText('after', '\nExamples:\n  comet-cc run claude\n  comet-cc run -- claude -p "hello" --model haiku')
    .action(async (command: string, args: string[]) => {
      const { child, setup } = await route(context, command, args);
      const watching = new AbortController();
      const watch = setup === null ? undefined : keepAlive(setup, watching.signal);
      const { runCommand } = await import('./run-child.ts');
      process.exitCode = await runCommand(child, context.term.say);
      watching.abort();
      await watch;
    });
}

/** Through the daemon where it runs or can be started, otherwise as if comet-cc were not there. */
async function route(context: Context, command: string, args: readonly string[]): Promise<Route> {
  try {
    return await throughDaemon(context, command, args);
  } catch (error) {
    context.term.progress('');
    const [why] = messageOf(error).split('\n');
    context.term.say(`comet-cc: ${why}; running ${command} without memory`);
    const bundle = path.join(context.paths.certsDir, 'bundle.pem');
    const env = isOurProxy(context.env['HTTPS_PROXY']) ? withoutOurs(context.env, bundle, null) : context.env;
    return { child: { command, args, env }, setup: null };
  }
}

async function throughDaemon(context: Context, command: string, args: readonly string[]): Promise<Route> {
  const { env, paths, term } = context;
  const { prepareDaemon } = await import('../../engine/lifecycle/index.ts');
  const { startDaemon } = await import('../../engine/lifecycle/index.ts');
  const setup = await prepareDaemon(context, {});
  term.progress('comet-cc: starting…');
  const { status, problem } = await startDaemon(setup);
  term.progress('');
  if (problem !== null) term.say(`comet-cc: ${problem}`);
  const variables = clientEnvironment({ port: status.port, token: setup.token, bundle: setup.bundle }, env);
  if (noProxyCovers(env, 'api.anthropic.com')) {
    term.say('comet-cc: NO_PROXY covers api.anthropic.com, so nothing will be remembered; take it out of NO_PROXY');
  }
  const child = { command, args, env: { ...env, ...variables } };
  const again = { ...setup, port: status.port, env: { ...setup.env, COMET_CC_PORT: String(status.port) } };
  if (!isClaude(command, env['COMET_CC_CLAUDE_BIN'] ?? 'claude')) return { child, setup: again };
  const file = path.join(paths.runDir, 'claude-settings.json');
  const settings = await withSettings(args, { variables, env, cwd: process.cwd(), file });
  if (settings.overridden) {
    term.say('comet-cc: your settings set another proxy and you pass --settings, so nothing will be remembered');
  }
  return { child: { ...child, args: settings.args }, setup: again };
}

/** A guard that dies is started again on its port while the command runs: the command knows no other. */
async function keepAlive(setup: DaemonSetup, signal: AbortSignal): Promise<void> {
  const { startDaemon } = await import('../../engine/lifecycle/index.ts');
  const { watchGuard } = await import('../../engine/lifecycle/index.ts');
  await watchGuard(setup.paths.guardSocket, async () => void (await startDaemon(setup)), signal);
}
