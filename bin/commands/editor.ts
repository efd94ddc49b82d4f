import { Argument, type Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import { EDITORS, type EditorName, editorSettingsFile } from '../../install/index.ts';
import { addCommand, type CommandFlags, type Context } from '../context.ts';

const editorArgument = (): Argument => new Argument('<editor>').choices(EDITORS);

export function registerEditor(program: Command, context: Context): void {
  const description = 'Claude Code in VS Code and its derivatives through the proxy';
  const editor = addCommand(program, 'editor', description, 'comet-cc editor install vscode');
  const installing = "set the proxy in the editor's settings, for Claude Code's extension alone (asks first)";
  const notes = 'The editor needs the daemon: comet-cc service install';
  addCommand(editor, 'install', installing, 'comet-cc editor install cursor', notes)
    .addArgument(editorArgument())
    .option('--yes', 'do not ask for confirmation')
    .jsonAction('document', (name: EditorName, flags: CommandFlags) => install(name, flags, context));
  addCommand(editor, 'uninstall', "restore the editor's settings", 'comet-cc editor uninstall cursor')
    .addArgument(editorArgument())
    .jsonAction('document', async (name: EditorName, flags: CommandFlags) => {
      const { uninstallEntries } = await import('../../install/claude-code/index.ts');
      const { paths, term } = context;
      const [file = null] = await uninstallEntries(paths, name, []);
      const message = file === null ? `${name} was not set up` : `restored ${file}`;
      term.print(flags, { editor: name, file }, () => [message]);
    });
  const status = 'which editors were set up, and whether they still point to comet-cc';
  addCommand(editor, 'status', status, 'comet-cc editor status').jsonAction('array', async (flags: CommandFlags) => {
    const { inspectEditors } = await import('../../install/editors/index.ts');
    const states = await inspectEditors(context.paths, null);
    if (flags.json) return context.term.json(states);
    if (states.length === 0) context.term.say('no editor was set up');
    for (const { editor: one, file, astray } of states) {
      const what = astray.length === 0 ? 'points to comet-cc' : `changed since: ${astray.join(', ')}`;
      context.term.out(`${one.padEnd(16)} ${what}  ${file}`);
    }
  });
}

async function install(editor: EditorName, flags: CommandFlags, context: Context): Promise<void> {
  const { clientEnvironment, prepareAccess, guardStatus } = await import('../../engine/lifecycle/index.ts');
  const { env, paths, term } = context;
  const port = (await guardStatus(paths.guardSocket))?.port ?? (await context.config()).port;
  const variables = clientEnvironment({ ...(await prepareAccess(context)), port }, env);
  const { installEntries } = await import('../../install/claude-code/index.ts');
  const file = editorSettingsFile(editor, process.platform, env);
  if (!flags.yes) {
    const { confirmed } = await import('../terminal/term.ts');
    term.say(`${file}: ${Object.keys(variables).join(', ')} for Claude Code's extension, not synced to other machines`);
    if (!(await confirmed('Change the file like this?')))
      throw new CometError('config_invalid', `${file} was left unchanged`);
  }
  const { changed } = await installEntries(paths, editor, file, variables);
  const done = `${file} changed; comet-cc editor uninstall ${editor} restores it`;
  const next = 'restart the editor; it needs the daemon: comet-cc service install';
  term.print(flags, { editor, file, changed }, () => (changed ? [done, next] : [`${file} already points to comet-cc`]));
}
