import type { Command } from 'commander';
import type { Setting } from '../../common/config.ts';
import { oneLine } from '../../common/text.ts';
import { addCommand, type Context, requireUser } from '../context.ts';
import { table } from '../terminal/table.ts';

export function registerConfig(program: Command, context: Context): void {
  const description = 'show and change the configuration; without --all only what differs from the defaults';
  const examples = 'comet-cc config --all\ncomet-cc config set trim.mode gentle';
  const config = addCommand(program, 'config', description, examples)
    .option('--all', 'every key')
    .option('--json', 'print one JSON document with every key')
    .action(async (flags: { all?: boolean; json?: boolean }) => {
      const { readSettings } = await import('../../common/config.ts');
      const settings = readSettings(context.env).map(withoutPassword);
      const shown = settings.filter(({ source }) => flags.all === true || source !== 'default');
      if (shown.length === 0 && !flags.json)
        return context.term.say('every key has its default; comet-cc config --all lists them');
      const document = Object.fromEntries(settings.map((each) => [each.key, settingJson(each)]));
      context.term.print(flags, document, () => settingLines(shown, context.term.width));
    });
  addCommand(config, 'get <key>', 'print the value of a key', 'comet-cc config get trim.mode')
    .option('--json', 'print one JSON document')
    .action(async (name: string, _: object, command: Command) => {
      const { findKey, readSettings } = await import('../../common/config.ts');
      const { key } = findKey(name);
      const setting = readSettings(context.env).find((each) => each.key === key) as Setting;
      context.term.print(command.optsWithGlobals(), settingJson(setting), () => [String(setting.value)]);
    });
  addCommand(config, 'set <key> <value>', 'write a key to config.json', 'comet-cc config set port 9443').action(
    (name: string, text: string) => setKey(context, name, text),
  );
}

async function setKey(context: Context, name: string, text: string): Promise<void> {
  requireUser(context);
  const { findKey, writeSetting } = await import('../../common/config.ts');
  const { guardStatus } = await import('../../engine/lifecycle/index.ts');
  const { key, variable } = findKey(name);
  await writeSetting(context.env, name, text);
  context.term.say(`${key} is ${text === '' ? 'empty' : text} in ${context.paths.configFile}`);
  if (context.env[variable]) context.term.say(`${variable} is set in the environment and overrides it`);
  const guard = await guardStatus(context.paths.guardSocket).catch(() => null);
  // A restart without it keeps the port, which open sessions use.
  const flag = key === 'port' ? ` --port ${text}` : '';
  if (guard === null) return;
  const later = `the running engine keeps the old value; apply it with: comet-cc restart${flag}`;
  context.term.say(key.startsWith('share.') ? 'it holds from the next exchange on' : later);
}

/** A list is shown to others; `config get` prints all of it. */
function withoutPassword(setting: Setting): Setting {
  const { value } = setting;
  return { ...setting, value: typeof value === 'string' ? value.replace(/\/\/[^/@\s]{1,500}@/, '//…@') : value };
}

function settingJson({ value, fallback, source, variable, description }: Setting) {
  return { value, default: fallback, source, variable, description };
}

function settingLines(settings: readonly Setting[], width: number): string[] {
  return table(settings, width, [
    { title: 'KEY', cell: ({ key }) => key },
    { title: 'VALUE', cell: ({ value }) => oneLine(String(value)) },
    { title: 'SOURCE', cell: ({ source }) => source },
    { title: 'VARIABLE', cell: ({ variable }) => variable },
    { title: 'MEANING', cell: ({ description }) => oneLine(description), stretch: true },
  ]);
}
