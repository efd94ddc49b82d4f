import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { type Command, Option } from 'commander';
import { CometError } from '../../common/errors.ts';
import { nodeProgram } from '../../common/paths.ts';
import { type HookCommands, userSettingsFile } from '../../install/index.ts';
import { addCommand, type CommandFlags, type Context } from '../context.ts';
import { removeEntries } from './edit-settings.ts';

type Flags = CommandFlags & { readonly scope: 'user' | 'project' };

export function registerHooks(program: Command, context: Context): void {
  const { env, paths, term } = context;
  const where = 'user: your settings; project: your local settings of this project';
  const scope = (): Option => new Option('--scope <where>', where).choices(['user', 'project']).default('user');
  const getFile = (flags: Flags): string =>
    flags.scope === 'user' ? userSettingsFile(env) : path.resolve('.claude', 'settings.local.json');
  const description = "Claude Code's hooks: project brief, recall, and summaries before it compacts";
  const hooks = addCommand(program, 'hooks', description, 'comet-cc hooks install');

  const adding = "add them to Claude Code's settings, with a backup; other settings are unchanged";
  addCommand(hooks, 'install', adding, 'comet-cc hooks install\ncomet-cc hooks install --scope project')
    .addOption(scope())
    .jsonAction('document', async (flags: Flags) => {
      const { findEntries, installEntries } = await import('../../install/claude-code/index.ts');
      const [file] = await findEntries(paths, 'plugin', [userSettingsFile(env)]);
      if (file !== undefined)
        throw new CometError('config_invalid', `${file} enables the plugin, which has these hooks: nothing to do`);
      const commands = await ownCommands();
      const done = await installEntries(paths, 'hooks', getFile(flags), commands);
      if (flags.json) return term.json({ ...done, hooks: commands });
      if (!done.plain) term.say(unread(done.file));
      if (!done.changed) return term.out(`${done.file} already has them`);
      term.out(`${done.file} has hooks for ${Object.keys(commands).join(', ')}`);
      if (done.backup !== null) term.out(`backup: ${done.backup}`);
      term.out('new sessions use them; remove them with: comet-cc hooks uninstall');
    });

  const removing = 'remove them from every settings file that they were added to';
  addCommand(hooks, 'uninstall', removing, 'comet-cc hooks uninstall').jsonAction('document', (flags: CommandFlags) =>
    removeEntries(context, flags, 'hooks', { file: userSettingsFile(env), what: 'comet-cc hooks' }),
  );

  const status = 'show which hooks the settings contain, and where the plugin with the same hooks is';
  addCommand(hooks, 'status', status, 'comet-cc hooks status')
    .addOption(scope())
    .jsonAction('document', async (flags: Flags) => {
      const { findEntries, inspectHooks } = await import('../../install/claude-code/index.ts');
      const { file, plain, events } = await inspectHooks(getFile(flags), await ownCommands());
      const installed = Object.values(events).every((state) => state === 'installed');
      const plugin = path.join(await packageDir(), 'hooks', 'plugin');
      if (flags.json) return term.json({ installed, file, plain, events, plugin });
      term.out(`settings  ${file}`);
      if (!plain) term.say(unread(file));
      for (const [event, state] of Object.entries(events)) term.out(`${event.padEnd(18)} ${state}`);
      const [enabled] = await findEntries(paths, 'plugin', [userSettingsFile(env)]);
      if (enabled !== undefined) return term.out(`plugin    has them, enabled in ${enabled}`);
      if (!installed) term.out('add them with: comet-cc hooks install');
      term.out(`plugin    ${plugin} (comet-cc setup --plugin, instead of these)`);
    });
}

export function unread(file: string): string {
  return `Claude Code ignores ${file} because it is not plain JSON; correct it, or remove its comments, to enable the hooks`;
}

export async function ownCommands(): Promise<HookCommands> {
  const { hookCommands } = await import('../../install/claude-code/index.ts');
  return hookCommands(findNode(), path.join(await packageDir(), 'dist', 'hooks'), shellWord);
}

/** A command line that runs this very program, whether or not it is on PATH. */
export async function ownCommandLine(...args: string[]): Promise<string> {
  const program = path.join(await packageDir(), 'dist', 'bin', 'comet-cc.js');
  return [shellWord(findNode()), shellWord(program), ...args].join(' ');
}

const findNode = (): string => nodeProgram(process.env['PATH'] ?? '');

function shellWord(text: string): string {
  return process.platform === 'win32' ? `"${text}"` : `'${text.replaceAll("'", "'\\''")}'`;
}

export async function packageDir(): Promise<string> {
  return path.resolve(path.dirname(await realpath(process.argv[1] as string)), '..', '..');
}
