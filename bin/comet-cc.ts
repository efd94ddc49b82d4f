#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import { CometError } from '../common/errors.ts';
import { registerCompletion } from './commands/completion.ts';
import { registerDemo } from './commands/demo.ts';
import { registerDoctor } from './commands/doctor.ts';
import { registerEnv } from './commands/env.ts';
import { registerExplain } from './commands/explain.ts';
import { registerFlush } from './commands/flush.ts';
import { registerInstallCa } from './commands/install-ca.ts';
import { registerLogs } from './commands/logs.ts';
import { registerMemory } from './commands/memory.ts';
import { registerRestart } from './commands/restart.ts';
import { registerRun } from './commands/run.ts';
import { registerService } from './commands/service.ts';
import { registerSession } from './commands/session.ts';
import { registerStart } from './commands/start.ts';
import { registerStatus } from './commands/status.ts';
import { registerStop } from './commands/stop.ts';
import { registerUninstallCa } from './commands/uninstall-ca.ts';
import { type Context, createContext } from './context.ts';
import { EXIT, exitCodeOf, messageOf } from './exit.ts';
import { VERSION } from './version.ts';

process.umask(0o077);
quietOnClosedPipe();
process.exitCode = await main(process.argv, createContext());

async function main(argv: readonly string[], context: Context): Promise<number> {
  try {
    await createProgram(context).parseAsync(argv);
    return Number(process.exitCode ?? EXIT.done);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    context.term.progress('');
    context.term.say(`comet-cc: ${messageOf(error)}`);
    const why = await configProblem(error, context);
    if (why !== '') context.term.say(`comet-cc: ${why}`);
    return exitCodeOf(error);
  }
}

/** A daemon that is not there cannot be started either while the configuration does not validate. */
async function configProblem(error: unknown, context: Context): Promise<string> {
  if (!(error instanceof CometError) || !['daemon_down', 'daemon_unhealthy'].includes(error.code)) return '';
  return await context.config().then(
    () => '',
    (reason: unknown) => messageOf(reason),
  );
}

function createProgram(context: Context): Command {
  const program = new Command('comet-cc')
    .description('Gives Claude Code lossless, structured memory through a local proxy.')
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .enablePositionalOptions()
    .exitOverride()
    .showHelpAfterError('(comet-cc --help lists everything)')
    .configureOutput({ getOutHelpWidth: () => Math.min(context.term.width, 100) })
    .addHelpText('after', '\nExample:\n  comet-cc run claude');
  registerRun(program, context);
  registerStart(program, context);
  registerStop(program, context);
  registerRestart(program, context);
  registerStatus(program, context);
  registerLogs(program, context);
  registerDoctor(program, context);
  registerEnv(program, context);
  registerService(program, context);
  registerInstallCa(program, context);
  registerUninstallCa(program, context);
  registerMemory(program, context);
  registerSession(program, context);
  registerExplain(program, context);
  registerFlush(program, context);
  registerDemo(program, context);
  registerCompletion(program, context);
  return program;
}

/** `comet-cc memory ls | head` must end without a word when `head` has seen enough. */
function quietOnClosedPipe(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(EXIT.done);
  });
}
