import type { Command } from 'commander';
import { addCommand, type CommandFlags, type Context } from '../context.ts';
import { openOnDesktop } from '../terminal/desktop.ts';

export function registerUi(program: Command, context: Context): void {
  addCommand(program, 'ui', 'open the dashboard in the browser; its link works once', 'comet-cc ui')
    .option('--no-open', 'only print the link')
    .jsonAction('document', async (flags: CommandFlags & { readonly open: boolean }) => {
      const { term, env } = context;
      const opened = await context.engine.call('ui/open', {});
      const { url, port, wanted_port: wanted } = opened;
      if (wanted !== 0 && port !== wanted) term.say(`port ${wanted} was taken; the dashboard uses ${port}`);
      term.print(flags, opened, () => [url]);
      // Over SSH a browser would open elsewhere.
      if (!flags.open || flags.json || !term.isTerminal || env['SSH_CONNECTION']) return;
      if (!(await openOnDesktop(url, env))) term.say('no browser could be opened; open the link yourself');
    });
}
