import type { Command } from 'commander';
import type { Context } from '../context.ts';
import { parsePort, reportStart } from './start.ts';

export function registerRestart(program: Command, context: Context): void {
  program
    .command('restart')
    .description('stop and start; the port stays, so sessions that use it go on')
    .option('--port <n>', 'move to another port', parsePort)
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc restart')
    .action(async (flags: { port?: number; json?: boolean }) => {
      const { startDaemon, stopDaemon } = await import('../daemon.ts');
      const { prepareDaemon } = await import('../prepare.ts');
      // A configuration that does not validate must be said while the old daemon still runs.
      await context.config();
      context.term.progress('restarting…');
      const stopped = await stopDaemon(context.paths);
      const port = flags.port ?? stopped?.port;
      const started = await startDaemon(await prepareDaemon(context, port === undefined ? {} : { port }));
      context.term.progress('');
      await reportStart(context, started, flags);
    });
}
