import { rm, rmdir } from 'node:fs/promises';
import path from 'node:path';
import { type Command, Option } from 'commander';
import { CometError, getMessage } from '../../common/errors.ts';
import { readFileIfPresent, writePrivateFile } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { isRecord, parseJson } from '../../common/text.ts';
import { getShell } from '../../engine/lifecycle/index.ts';
import { findEntries, findRegistrations, inspectHooks, installEntries } from '../../install/claude-code/index.ts';
import {
  completionFile,
  completionScript,
  findCompletionFiles,
  installCompletion,
} from '../../install/completion/index.ts';
import { userSettingsFile } from '../../install/index.ts';
import { currentServicePlan, inspectService, installService } from '../../install/service/index.ts';
import { addCommand, type CommandFlags, type Context, EXIT } from '../context.ts';
import { confirmed } from '../terminal/term.ts';
import { ownCommandLine, ownCommands, packageDir, unread } from './hooks.ts';

type Flags = CommandFlags<'undo' | 'plugin'> & { readonly without?: readonly PartName[] };

const PARTS = ['statusline', 'hooks', 'plugin', 'service', 'completion'] as const;
type PartName = (typeof PARTS)[number];

/** One thing that setup does. `state` is '' where it is still to be done, else why it is not. */
interface Part {
  readonly name: PartName;
  readonly does: string;
  readonly state: string;
  install(): Promise<unknown>;
}

export function registerSetup(program: Command, context: Context): void {
  const description = 'set up status line, hooks, start at login and shell completion, after asking once';
  const examples = 'comet-cc setup\ncomet-cc setup --plugin --without service\ncomet-cc setup --undo';
  addCommand(program, 'setup', description, examples)
    .option('--plugin', "Claude Code's plugin instead of the hooks: the same hooks, memory tools and slash commands")
    .addOption(new Option('--without <part...>', 'leave these out').choices(PARTS))
    .option('--undo', 'take back what setup did')
    .option('--yes', 'do not ask')
    .jsonAction('document', (flags: Flags) =>
      flags.undo ? undoSetup(context, flags) : setUp(context, program, flags),
    );
}

async function setUp(context: Context, program: Command, flags: Flags): Promise<void> {
  const { paths, term } = context;
  const earlier = await readDone(paths);
  const parts = (await planParts(context, program, flags, earlier)).filter(
    ({ name }) => !flags.without?.includes(name),
  );
  const open = parts.filter(({ state }) => state === '');
  if (open.length > 0 && !flags.yes) {
    for (const { name, does, state } of parts) term.say(`${name.padEnd(11)} ${state || does}`);
    if (!(await confirmed('Set this up?'))) throw new CometError('usage', 'nothing was changed');
  }
  const replaced = open.some(({ name }) => name === 'plugin') && earlier.includes('hooks');
  if (replaced) await undoPart(context, 'hooks');
  const done = earlier.filter((name) => !replaced || name !== 'hooks');
  const results: { part: PartName; done: boolean; detail: string }[] = [];
  for (const { name, does, state, install } of parts) {
    // Recorded first: what is interrupted can be taken back.
    if (state === '') await writeDone(paths, [...done, name]);
    const failure = state === '' ? await install().then(() => '', getMessage) : '';
    if (failure !== '') context.exitCode = EXIT.failed;
    const problem = state || failure;
    if (problem === '') done.push(name);
    results.push({ part: name, done: problem === '', detail: problem || does });
  }
  await writeDone(paths, done);
  const { file, plain } = await inspectHooks(userSettingsFile(context.env), await ownCommands());
  if (!plain) term.say(unread(file));
  term.print(flags, { parts: results }, () => [
    ...results.map((each) => `${each.part.padEnd(11)} ${each.done ? 'done: ' : ''}${each.detail}`),
    '',
    'Next: cd to your project, then comet-cc run claude',
    'To take all of it back: comet-cc setup --undo',
  ]);
}

async function undoSetup(context: Context, flags: Flags): Promise<void> {
  const { paths, term } = context;
  const done = await readDone(paths);
  if (done.length === 0) return term.print(flags, { undone: [] }, () => ['setup has nothing to take back']);
  if (!flags.yes) {
    term.say(`setup did: ${done.join(', ')}`);
    if (!(await confirmed('Take it back?'))) throw new CometError('usage', 'nothing was changed');
  }
  for (const name of done.toReversed()) {
    await undoPart(context, name);
    await writeDone(paths, done.slice(0, done.indexOf(name)));
  }
  // Only an empty home goes.
  await rmdir(paths.home).catch(() => undefined);
  term.print(flags, { undone: done }, () => done.map((name) => `${name.padEnd(11)} taken back`));
}

async function planParts(
  context: Context,
  program: Command,
  flags: Flags,
  earlier: readonly PartName[],
): Promise<Part[]> {
  const { env, paths } = context;
  const settings = userSettingsFile(env);
  const isThere = (name: PartName): string => `is there already${earlier.includes(name) ? '' : ', not from setup'}`;
  const isOurs = (await findEntries(paths, 'statusline', [settings])).length > 0;
  const { hasStatusLine } = await inspectHooks(settings, await ownCommands());
  return [
    {
      name: 'statusline',
      does: `what memory is doing, below Claude Code's prompt: ${settings}`,
      state: isOurs ? isThere('statusline') : hasStatusLine ? 'left out: you have one of your own' : '',
      install: async () =>
        installEntries(paths, 'statusline', settings, { command: await ownCommandLine('statusline') }),
    },
    await planHooksOrPlugin(context, settings, flags, earlier),
    await planService(context, isThere('service')),
    await planCompletion(context, program, isThere('completion')),
  ];
}

/** Never both: each prompt would be handled twice. */
async function planHooksOrPlugin(
  { env, paths }: Context,
  settings: string,
  flags: Flags,
  earlier: readonly PartName[],
): Promise<Part> {
  const commands = await ownCommands();
  const hooked = await findEntries(paths, 'hooks', [settings]);
  const plugged =
    (await findEntries(paths, 'plugin', [settings])).length > 0 ||
    (await findRegistrations(env)).some(({ what }) => what === 'plugin');
  if (flags.plugin) {
    const dir = path.join(await packageDir(), 'hooks');
    const isBlocked = hooked.length > 0 && !earlier.includes('hooks');
    return {
      name: 'plugin',
      does: `hooks, memory tools and slash commands: ${settings}`,
      state: plugged ? 'is there already' : isBlocked ? 'left out: comet-cc hooks uninstall first' : '',
      install: () => installEntries(paths, 'plugin', settings, { dir }),
    };
  }
  const { events } = await inspectHooks(settings, commands);
  const complete = Object.values(events).every((state) => state === 'installed');
  return {
    name: 'hooks',
    does: `recall on resume, and summaries before Claude Code compacts: ${settings}`,
    state: plugged ? 'left out: the plugin has them' : complete ? 'is there already' : '',
    install: () => installEntries(paths, 'hooks', settings, commands),
  };
}

async function planService({ env, paths }: Context, isThere: string): Promise<Part> {
  const plan = await currentServicePlan(env, paths.home);
  const inspection = plan === null ? null : await inspectService(plan);
  const missing = inspection === null ? `no service manager is known for ${process.platform}` : inspection.missing;
  return {
    name: 'service',
    does: `start at login: ${plan?.file}`,
    state: inspection?.installed ? isThere : missing === '' ? '' : `left out: ${missing}`,
    install: async () => plan !== null && installService(paths, plan, () => undefined),
  };
}

async function planCompletion({ env, paths }: Context, program: Command, isThere: string): Promise<Part> {
  const shell = getShell(env);
  const file = completionFile(shell, env);
  const noFile = shell === 'zsh' ? 'add to ~/.zshrc: eval "$(comet-cc completion zsh)"' : `there is none for ${shell}`;
  const isInstalled = file !== null && (await findCompletionFiles(env)).includes(file);
  return {
    name: 'completion',
    does: `${file}`,
    state: file === null ? `left out: ${noFile}` : isInstalled ? isThere : '',
    install: async () => {
      await installCompletion(paths, env, { shell, script: completionScript(shell as 'bash' | 'fish', program) });
    },
  };
}

async function undoPart(context: Context, name: PartName): Promise<void> {
  const { uninstallSteps } = await import('./uninstall-plan.ts');
  const steps = uninstallSteps(context, { keepMemory: true, log: () => undefined });
  await steps.find(({ id }) => id === name)?.undo();
}

async function readDone({ setupFile }: HomePaths): Promise<PartName[]> {
  const record = parseJson((await readFileIfPresent(setupFile)) ?? '{}');
  const parts = isRecord(record) && Array.isArray(record['parts']) ? record['parts'] : [];
  return PARTS.filter((name) => parts.includes(name));
}

async function writeDone({ setupFile }: HomePaths, parts: readonly PartName[]): Promise<void> {
  if (parts.length === 0) return rm(setupFile, { force: true });
  await writePrivateFile(setupFile, `${JSON.stringify({ parts })}\n`);
}
