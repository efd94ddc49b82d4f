import type { Command } from 'commander';
import { addCommand, type CommandFlags, type Context, readingEngine } from '../context.ts';

type Flags = CommandFlags & { readonly open: boolean };

export function registerUi(program: Command, context: Context): void {
  addCommand(program, 'ui', 'open the dashboard in the browser; its link works once', 'comet-cc ui')
    .option('--no-open', 'only print the link')
    .jsonAction('document', async (flags: Flags) => {
      const { term, env } = context;
      const opened = await readingEngine(context).call('ui/open', {});
      const { url, port, wanted_port: wanted } = opened;
      if (wanted !== 0 && port !== wanted) term.say(`port ${wanted} is taken; the dashboard uses ${port}`);
      term.print(flags, opened, () => [url]);
      if (!flags.open || flags.json || !term.isTerminal || !hasBrowser(env)) return;
      if (!(await openBrowser(url))) term.say('no browser could be opened; open the link yourself');
    });
}

/** Over SSH, and on Linux without a display, a browser would open elsewhere or not at all. */
function hasBrowser(env: NodeJS.ProcessEnv): boolean {
  if (env['SSH_CONNECTION']) return false;
  return process.platform !== 'linux' || Boolean(env['DISPLAY'] || env['WAYLAND_DISPLAY']);
}

const OPENERS: Readonly<Record<string, readonly [file: string, ...args: string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};
const OPENER_MS = 10_000;

async function openBrowser(url: string): Promise<boolean> {
  const { execa } = await import('execa');
  const [file, ...args] = OPENERS[process.platform] ?? ['xdg-open'];
  const { failed } = await execa(file, [...args, url], { stdio: 'ignore', reject: false, timeout: OPENER_MS });
  return !failed;
}
