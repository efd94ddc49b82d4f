import type { Command } from 'commander';
import { stopDaemon } from '../../engine/lifecycle/index.ts';
import type { Context } from '../context.ts';

export function registerStop(program: Command, context: Context): void {
  program
    .command('stop')
    .description('stop the daemon once running requests have ended (at most 30 s)')
    .addHelpText('after', '\nExample:\n  comet-cc stop')
    .action(async () => {
      context.term.progress('stopping…');
      const stopped = await stopDaemon(context.paths);
      context.term.progress('');
      if (stopped === null) return context.term.out('comet-cc is not running');
      context.term.out(`comet-cc stopped (it ran on port ${stopped.port})`);
      context.term.say('Sessions that still use it wait for about three minutes; comet-cc start brings it back.');
    });
}
