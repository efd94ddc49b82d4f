import type { Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import { engineOf } from '../../engine/api/index.ts';
import type { Context } from '../context.ts';
import { parseCount } from '../terminal/format.ts';

export function registerFlush(program: Command, context: Context): void {
  program
    .command('flush')
    .description('wait until all turns are processed; exit code 1 on timeout')
    .option('--timeout <s>', 'seconds to wait', '120')
    .addHelpText('after', '\nExample:\n  comet-cc flush --timeout 60')
    .action(async (flags: { timeout: string }) => {
      const seconds = parseCount(flags.timeout, '--timeout');
      context.term.progress('waiting for sensor, summarizer and indexer…');
      const idle = await engineOf(context.paths).call(
        'flush',
        { timeoutMs: Math.min(seconds, 3_600) * 1_000 },
        { timeoutMs: (Math.min(seconds, 3_600) + 5) * 1_000 },
      );
      context.term.progress('');
      if (!idle) {
        throw new CometError(
          'model_timeout',
          `not idle after ${seconds} s; see comet-cc status, or wait with --timeout`,
        );
      }
      context.term.out('all turns are processed');
    });
}
