import type { Command } from 'commander';
import { guardStatus } from '../../engine/lifecycle/index.ts';
import type { Context } from '../context.ts';
import { parsePort, reportStart } from './start.ts';

export function registerRestart(program: Command, context: Context): void {
  program
    .command('restart')
    .description('stop and start on the same port; sessions that use it continue')
    .option('--port <n>', 'move to another port', parsePort)
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc restart')
    .action(async (flags: { port?: number; json?: boolean }) => {
      const { startDaemon, stopDaemon } = await import('../../engine/lifecycle/index.ts');
      const { prepareDaemon } = await import('../../engine/lifecycle/index.ts');
      const running = await guardStatus(context.paths.guardSocket);
      const port = flags.port ?? running?.port;
      // What keeps a daemon from starting must be said while the old one still runs.
      const setup = await prepareDaemon(context, port === undefined ? {} : { port });
      context.term.progress('restarting…');
      await stopDaemon(context.paths);
      const started = await startDaemon(setup);
      context.term.progress('');
      await reportStart(context, started, flags);
    });
}
