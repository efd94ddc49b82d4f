import type { Command } from 'commander';
import { userSettingsFile } from '../../install/index.ts';
import { addCommand, type CommandFlags, type Context } from '../context.ts';
import { printStatusline } from '../terminal/statusline.ts';
import { removeEntries } from './edit-settings.ts';

export function registerStatusline(program: Command, context: Context): void {
  const { env, paths, term } = context;
  const description = "one line for Claude Code's statusline, from its JSON on stdin; never fails";
  const piped = 'echo \'{"session_id":"5f3a","cwd":"/home/me/shop"}\' | comet-cc statusline';
  const statusline = addCommand(program, 'statusline', description, `comet-cc statusline install\n${piped}`);
  statusline.action(() => printStatusline(context));

  const installing = 'show it in Claude Code: adds statusLine to your settings; one of your own is left alone';
  const install = addCommand(statusline, 'install', installing, 'comet-cc statusline install');
  install.jsonAction('document', async (flags: CommandFlags) => {
    const { installEntries } = await import('../../install/claude-code/index.ts');
    const { ownCommandLine } = await import('./hooks.ts');
    const command = await ownCommandLine('statusline');
    const done = await installEntries(paths, 'statusline', userSettingsFile(env), { command });
    term.print(flags, done, () => [
      done.changed ? `${done.file} has the status line now` : `${done.file} already has it`,
      ...(done.backup === null ? [] : [`backup: ${done.backup}`]),
    ]);
  });

  const removing = { file: userSettingsFile(env), what: 'comet-cc status line' };
  const removal = addCommand(statusline, 'uninstall', 'remove it from your settings', 'comet-cc statusline uninstall');
  removal.jsonAction('document', (flags: CommandFlags) => removeEntries(context, flags, 'statusline', removing));
}
