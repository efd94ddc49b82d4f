import type { Command } from 'commander';
import type { Context } from '../context.ts';

export function registerDemo(program: Command, context: Context): void {
  program
    .command('demo')
    .description('a whole conversation through the real proxy; needs no login and no network')
    .option('--keep', 'leave its temporary home behind')
    .addHelpText('after', '\nExample:\n  comet-cc demo')
    .action(async (flags: { keep?: boolean }) => {
      const { runDemo } = await import('../demo/index.ts');
      await runDemo({ keep: flags.keep ?? false, term: context.term });
    });
}
