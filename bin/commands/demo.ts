import type { Command } from 'commander';
import { addCommand, type Context } from '../context.ts';

export function registerDemo(program: Command, context: Context): void {
  const description = 'play a recorded conversation through the real proxy; needs no login and no network';
  addCommand(program, 'demo', description, 'comet-cc demo')
    .option('--keep', 'keep its temporary home')
    .jsonAction('document', async (flags: { keep?: boolean; json?: boolean }) => {
      const { runDemo } = await import('../demo/index.ts');
      const { env, term } = context;
      await runDemo({ env, term, keep: flags.keep ?? false, json: flags.json ?? false });
    });
}
