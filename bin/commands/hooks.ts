import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { type Command, Option } from 'commander';
import type { HookCommands } from '../../install/claude-code/hook-entries.ts';
import { userSettingsFile } from '../../install/claude-code/settings-file.ts';
import type { Context } from '../context.ts';

interface Flags {
  readonly scope: 'user' | 'project';
  readonly json?: boolean;
}

export function registerHooks(program: Command, context: Context): void {
  const { env, paths, term } = context;
  const scope = (): Option =>
    new Option('--scope <where>', 'your own settings, or your local ones of the project here')
      .choices(['user', 'project'])
      .default('user');
  const fileOf = (flags: Flags): string =>
    flags.scope === 'user' ? userSettingsFile(env) : path.resolve('.claude', 'settings.local.json');
  const hooks = program
    .command('hooks')
    .description("Claude Code's hooks: handoff, recall, and memory made before it forgets")
    .addHelpText('after', '\nExample:\n  comet-cc hooks install');

  hooks
    .command('install')
    .description("add them to Claude Code's settings, with a backup; all else in there stays as it is")
    .addOption(scope())
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExamples:\n  comet-cc hooks install\n  comet-cc hooks install --scope project')
    .action(async (flags: Flags) => {
      const { installHooks } = await import('../../install/claude-code/hooks.ts');
      const commands = await ownCommands();
      const done = await installHooks(paths, fileOf(flags), commands);
      if (flags.json) return term.json({ ...done, hooks: commands });
      if (!done.plain) term.say(unread(done.file));
      if (!done.changed) return term.out(`${done.file} has them already`);
      term.out(`${done.file} has hooks for ${Object.keys(commands).join(', ')}`);
      if (done.backup !== null) term.out(`backup: ${done.backup}`);
      term.out('sessions that are started from now on use them; comet-cc hooks uninstall takes them out');
    });

  hooks
    .command('uninstall')
    .description('take them out of every settings file that they were put into')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc hooks uninstall')
    .action(async (flags: { json?: boolean }) => {
      const { uninstallHooks } = await import('../../install/claude-code/hooks.ts');
      const changed = await uninstallHooks(paths, [userSettingsFile(env)]);
      if (flags.json) return term.json({ files: changed });
      for (const file of changed) term.out(`${file} has no hook of ours any more`);
      if (changed.length === 0) term.out('nothing was installed');
    });

  hooks
    .command('status')
    .description('which of them stand in the settings, and where the plugin is that has them too')
    .addOption(scope())
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc hooks status')
    .action(async (flags: Flags) => {
      const { inspectHooks } = await import('../../install/claude-code/hooks.ts');
      const { file, plain, events } = await inspectHooks(fileOf(flags), await ownCommands());
      const installed = Object.values(events).every((state) => state === 'installed');
      const plugin = path.join(await packageDir(), 'hooks', 'plugin');
      if (flags.json) return term.json({ installed, file, plain, events, plugin });
      term.out(`settings  ${file}`);
      if (!plain) term.say(unread(file));
      for (const [event, state] of Object.entries(events)) term.out(`${event.padEnd(18)} ${state}`);
      if (!installed) term.out('to have them: comet-cc hooks install');
      term.out(`plugin    ${plugin} (claude --plugin-dir, instead of hooks install)`);
    });
}

function unread(file: string): string {
  return `Claude Code takes nothing from ${file} while it is not plain JSON; take its comments out, and the hooks work`;
}

async function ownCommands(): Promise<HookCommands> {
  const { hookCommands } = await import('../../install/claude-code/hook-entries.ts');
  const quote = (text: string): string =>
    process.platform === 'win32' ? `"${text}"` : `'${text.replaceAll("'", "'\\''")}'`;
  return hookCommands(process.execPath, path.join(await packageDir(), 'dist', 'hooks'), quote);
}

async function packageDir(): Promise<string> {
  return path.resolve(path.dirname(await realpath(process.argv[1] as string)), '..', '..');
}
