import { Argument, type Command } from 'commander';
import { bashCompletion } from '../../install/completion/bash.ts';
import { type CommandShape, shapesOf } from '../../install/completion/command-tree.ts';
import { fishCompletion } from '../../install/completion/fish.ts';
import { zshCompletion } from '../../install/completion/zsh.ts';
import type { Context } from '../context.ts';

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } satisfies Record<
  string,
  (shapes: readonly CommandShape[]) => string
>;

export function registerCompletion(program: Command, context: Context): void {
  const EXAMPLES = [
    'comet-cc completion bash --install        for good; fish too',
    'eval "$(comet-cc completion bash)"        in ~/.bashrc',
    'eval "$(comet-cc completion zsh)"         in ~/.zshrc, after compinit',
    'comet-cc completion fish | source         in config.fish',
  ];
  program
    .command('completion')
    .description("the shell's completion of commands and flags, as a script")
    .addArgument(new Argument('<shell>', 'whose syntax to print').choices(Object.keys(SCRIPTS)))
    .option('--install', 'write it where bash or fish looks for it by itself')
    .addHelpText('after', `\nExamples:\n  ${EXAMPLES.join('\n  ')}`)
    .action(async (shell: keyof typeof SCRIPTS, flags: { install?: boolean }) => {
      const script = SCRIPTS[shell](shapesOf(program));
      if (!flags.install) return context.term.out(script);
      const { writeCompletion } = await import('../../install/completion/install.ts');
      context.term.out(`wrote ${await writeCompletion(context.paths, context.env, { shell, script })}`);
    });
}
