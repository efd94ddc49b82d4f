import type { Command } from 'commander';
import { addCommand, type Context } from '../context.ts';
import { printStatusline } from '../terminal/statusline.ts';

export function registerStatusline(program: Command, context: Context): void {
  const { env, paths, term } = context;
  const statusline = program
    .command('statusline')
    .description("one line for Claude Code's statusline, from its JSON on stdin; never fails")
    .addHelpText(
      'after',
      '\nExamples:\n  comet-cc statusline install\n' +
        '  echo \'{"session_id":"5f3a","cwd":"/home/me/shop"}\' | comet-cc statusline',
    )
    .action(() => printStatusline(context));

  addCommand(
    statusline,
    'install',
    'show it in Claude Code: adds statusLine to your settings; one of your own is left alone',
    'comet-cc statusline install',
  )
    .option('--json', 'print one JSON document')
    .action(async (flags: { json?: boolean }) => {
      const { installEntries } = await import('../../install/claude-code/index.ts');
      const { userSettingsFile } = await import('../../install/index.ts');
      const { ownCommandLine } = await import('./hooks.ts');
      const command = await ownCommandLine('statusline');
      const done = await installEntries(paths, 'statusline', userSettingsFile(env), { command });
      term.print(flags, done, () => [
        done.changed ? `${done.file} has the status line now` : `${done.file} already has it`,
        ...(done.backup === null ? [] : [`backup: ${done.backup}`]),
      ]);
    });

  addCommand(statusline, 'uninstall', 'remove it from your settings', 'comet-cc statusline uninstall')
    .option('--json', 'print one JSON document')
    .action(async (flags: { json?: boolean }) => {
      const { uninstallEntries } = await import('../../install/claude-code/index.ts');
      const { userSettingsFile } = await import('../../install/index.ts');
      const files = await uninstallEntries(paths, 'statusline', [userSettingsFile(env)]);
      term.print(flags, { files }, () =>
        files.length === 0 ? ['nothing was installed'] : files.map((file) => `${file} has no comet-cc status line now`),
      );
    });
}
