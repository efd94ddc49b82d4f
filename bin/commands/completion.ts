import { Argument, type Command } from 'commander';
import { addCommand, type Context } from '../context.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

export function registerCompletion(program: Command, context: Context): void {
  const EXAMPLES = [
    'comet-cc completion bash --install        for good; fish too',
    'eval "$(comet-cc completion bash)"        in ~/.bashrc',
    'eval "$(comet-cc completion zsh)"         in ~/.zshrc, after compinit',
    'comet-cc completion fish | source         in config.fish',
  ];
  addCommand(program, 'completion', "the shell's completion of commands and flags, as a script", EXAMPLES.join('\n'))
    .addArgument(new Argument('<shell>', 'whose syntax to print').choices(SHELLS))
    .option('--install', 'write it where bash or fish looks for it by itself')
    .action(async (shell: (typeof SHELLS)[number], flags: { install?: boolean }) => {
      const { completionScript, installCompletion } = await import('../../install/completion/index.ts');
      const script = completionScript(shell, program);
      if (!flags.install) return context.term.out(script);
      context.term.out(`wrote ${await installCompletion(context.paths, context.env, { shell, script })}`);
    });
}
