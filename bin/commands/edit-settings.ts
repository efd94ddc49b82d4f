import { bundleFile } from '../../certs/index.ts';
import { CometError } from '../../common/errors.ts';
import { clientEnvironment, isOurProxy } from '../../engine/lifecycle/index.ts';
import type { Context } from '../context.ts';

/**
 * Sets the variables in Claude Code's own settings, so that every session uses the proxy; asks first.
 * @throws CometError `trust_failed` when the user declines
 */
export async function setSettings(
  context: Context,
  variables: Readonly<Record<string, string>>,
  flags: { readonly yes?: boolean; readonly json?: boolean },
) {
  const { editSettings, planSettings } = await import('../../install/claude-code/index.ts');
  const { userSettingsFile } = await import('../../install/index.ts');
  const { confirmed } = await import('../terminal/term.ts');
  const { term } = context;
  const plan = await planSettings(userSettingsFile(context.env), variables);
  const changed = plan.changes.filter(({ from, to }) => from !== to).map(({ name }) => name);
  if (changed.length === 0) {
    if (!flags.json) term.out(`settings      ${plan.file} already points to comet-cc`);
    return { file: plan.file, backup: null as string | null, changed };
  }
  for (const { name, from, to } of plan.changes) {
    if (from !== to)
      term.say(`${plan.file}: env.${name} = ${masked(to)}${from === undefined ? '' : ', instead of yours'}`);
  }
  if (!flags.yes && !(await confirmed('Change the file like this?')))
    throw new CometError('trust_failed', `${plan.file} was left unchanged`);
  const { backup } = await editSettings(context.paths, plan);
  if (!flags.json) {
    term.out(`settings      ${plan.file} changed: ${changed.join(', ')}`);
    if (backup !== null) term.out(`              backup: ${backup}`);
    term.out('              Claude Code needs the daemon: comet-cc start');
  }
  return { file: plan.file, backup, changed };
}

/** Variables of this home in Claude Code's settings, also where no record tells of them: the file was moved, or the home lost. */
export async function ownVariables({ env, paths }: Context): Promise<Readonly<Record<string, readonly string[]>>> {
  const { settingsEnv, userSettingsFile } = await import('../../install/index.ts');
  const set = await settingsEnv(userSettingsFile(env));
  const ours = clientEnvironment({ port: 0, token: '', bundle: bundleFile(paths.certsDir) }, {});
  if (set['NODE_EXTRA_CA_CERTS'] !== ours['NODE_EXTRA_CA_CERTS']) return {};
  const own = Object.entries(set).filter(([name, value]) => isOurProxy(String(value)) || ours[name] === value);
  return Object.fromEntries(own.map(([name, value]) => [name, [String(value)]]));
}

/** Removes entries from a file of the user, and from every other one that is recorded. */
export async function removeEntries(
  { paths, term }: Context,
  flags: { readonly json?: boolean },
  name: 'hooks' | 'statusline' | 'library',
  { file, what, none = 'nothing was installed' }: Readonly<Record<'file' | 'what', string>> & { none?: string },
): Promise<void> {
  const { uninstallEntries } = await import('../../install/claude-code/index.ts');
  const files = await uninstallEntries(paths, name, [file]);
  term.print(flags, { files }, () => (files.length === 0 ? [none] : files.map((each) => `${each} has no ${what} now`)));
}

/** The token is for programs, not for a screen that others may see. */
const masked = (value: string): string => value.replace(/(\/\/[^:/@]+:)[^/@]+@/, '$1…@');
