import type { Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import type { Context } from '../context.ts';
import { EDITORS, type EditorName, editorSettingsFile, jetbrainsSteps } from '../editors/editors.ts';

interface Flags {
  readonly yes?: boolean;
  readonly json?: boolean;
}

const NAMES = [...EDITORS, 'jetbrains'].join(', ');

export function registerEditor(program: Command, context: Context): void {
  const editor = program
    .command('editor')
    .description('Claude Code in VS Code, Cursor and JetBrains through the proxy')
    .addHelpText('after', '\nExample:\n  comet-cc editor install vscode');
  editor
    .command('install')
    .description("set the proxy in the editor's settings, for Claude Code's extension alone (asks first)")
    .argument('<editor>', NAMES)
    .option('--yes', 'do not ask')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      '\nThe daemon has to run for it: comet-cc service install\n\nExample:\n  comet-cc editor install cursor',
    )
    .action((name: string, flags: Flags) => install(name, flags, context));
  editor
    .command('uninstall')
    .description("put the editor's settings back as they were")
    .argument('<editor>', NAMES)
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc editor uninstall cursor')
    .action(async (name: string, flags: Flags) => {
      if (name === 'jetbrains') {
        reportJetbrains(context, flags);
        return;
      }
      const { revertEditor } = await import('../editors/install.ts');
      const file = await revertEditor(context.paths, parseEditor(name));
      if (flags.json) return context.term.json({ editor: name, file });
      context.term.out(file === null ? `${name} was not set up` : `${file} is as it was`);
    });
  editor
    .command('status')
    .description('which editors were set up, and whether they still lead here')
    .option('--json', 'print one JSON array')
    .addHelpText('after', '\nExample:\n  comet-cc editor status')
    .action(async (flags: Flags) => {
      const { editorStates } = await import('../editors/install.ts');
      const states = await editorStates(context.paths, null);
      if (flags.json) return context.term.json(states);
      if (states.length === 0) context.term.say('no editor was set up');
      for (const { editor: one, file, astray } of states) {
        const what = astray.length === 0 ? 'leads to comet-cc' : `changed since: ${astray.join(', ')}`;
        context.term.out(`${one.padEnd(16)} ${what}  ${file}`);
      }
    });
}

async function install(name: string, flags: Flags, context: Context): Promise<void> {
  if (name === 'jetbrains') {
    reportJetbrains(context, flags);
    return;
  }
  const editor = parseEditor(name);
  const { clientEnvironment } = await import('../environment.ts');
  const { prepareAccess } = await import('../daemon/prepare.ts');
  const { guardStatus } = await import('../daemon/control.ts');
  const { setUpEditor } = await import('../editors/install.ts');
  const { env, paths, term } = context;
  const port = (await guardStatus(paths.guardSocket))?.port ?? (await context.config()).port;
  const variables = clientEnvironment({ ...(await prepareAccess(context)), port }, env);
  const file = editorSettingsFile(editor, process.platform, env);
  if (!flags.yes) {
    const { confirmed } = await import('../terminal/ask.ts');
    term.say(`${file}: ${Object.keys(variables).join(', ')} for Claude Code's extension, not synced to other machines`);
    if (!(await confirmed('Change the file like this?'))) {
      throw new CometError('config_invalid', `${file} was left as it is`);
    }
  }
  const changed = await setUpEditor(paths, editor, file, variables);
  if (flags.json) return term.json({ editor, file, changed });
  term.out(changed ? `${file} changed; comet-cc editor uninstall ${editor} puts it back` : `${file} has it already`);
  if (changed) term.out('start the editor anew; the daemon has to run for it: comet-cc service install');
}

function reportJetbrains({ term }: Context, flags: Flags): void {
  const steps = jetbrainsSteps('comet-cc run claude');
  if (flags.json) term.json({ editor: 'jetbrains', file: null, steps });
  else for (const line of steps) term.out(line);
}

/** @throws CometError `usage` */
function parseEditor(name: string): EditorName {
  const found = EDITORS.find((one) => one === name);
  if (found === undefined) throw new CometError('usage', `the editor is one of ${NAMES} (got "${name}")`);
  return found;
}
