import os from 'node:os';
import path from 'node:path';
import { readFileIfPresent, writeFileAtomic } from '../../common/files.ts';
import { parseJson } from '../../common/text.ts';

/**
 * Arguments that keep the `env` of Claude Code's settings files from overriding `variables`.
 *
 * Settings override the process environment. Where one of the files sets another value, the variables go into a
 * settings file for this process alone; arguments would show the token to other users.
 * @returns `args`, with `--settings FILE` in front where that is needed; `problem`: why Claude Code would not use the
 *   proxy, or not trust it and so reach nothing; '' where all is well
 */
export async function withSettings(
  args: readonly string[],
  options: {
    readonly variables: Readonly<Record<string, string>>;
    readonly env: NodeJS.ProcessEnv;
    readonly cwd: string;
    readonly file: string;
    /** The system's store has the root too. */
    readonly isTrusted: boolean;
    readonly managed?: string;
  },
): Promise<{ readonly args: readonly string[]; readonly problem: string }> {
  const { variables, isTrusted } = options;
  const problem = await managedProblem(variables, isTrusted, options.managed);
  const files = ['settings.json', 'settings.local.json'].map((name) => path.join(options.cwd, '.claude', name));
  const values = await Promise.all([userSettingsFile(options.env), ...files].map(settingsEnv));
  const clashes = values.flatMap((env) => findClashes(env, variables));
  if (problem !== '' || clashes.length === 0) return { args, problem };
  // Claude Code accepts one --settings, and the user gave one.
  if (args.some((arg) => arg === '--settings' || arg.startsWith('--settings='))) {
    const isFine = isTrusted && clashes.every((name) => name === 'NODE_EXTRA_CA_CERTS');
    return { args, problem: isFine ? '' : 'your settings set another proxy or CA and you pass --settings' };
  }
  const proxy = variables['HTTPS_PROXY'] as string;
  const env = { ...variables, ...(clashes.includes('https_proxy') ? { https_proxy: proxy } : {}) };
  await writeFileAtomic(options.file, JSON.stringify({ env }));
  return { args: ['--settings', options.file, ...args], problem: '' };
}

/** What settings of the organization, which win over all others, do to the proxy; '' for nothing. */
export async function managedProblem(
  wanted: Readonly<Record<string, string>>,
  isTrusted: boolean,
  file = `${process.platform === 'darwin' ? '/Library/Application Support/ClaudeCode' : '/etc/claude-code'}/managed-settings.json`,
): Promise<string> {
  const names = findClashes(await settingsEnv(file), wanted);
  if (names.some((name) => name !== 'NODE_EXTRA_CA_CERTS')) return `${file} sets another proxy, which wins`;
  const next = 'Claude Code trusts comet-cc once the system does: comet-cc install-ca --system';
  return names.length === 0 || isTrusted ? '' : `${file} sets NODE_EXTRA_CA_CERTS, which wins; ${next}`;
}

/** The variables of settings by which Claude Code does not reach the proxy, or does not trust it. */
export function findClashes(set: Readonly<Record<string, unknown>>, wanted: Readonly<Record<string, string>>) {
  return (['HTTPS_PROXY', 'https_proxy', 'NODE_EXTRA_CA_CERTS'] as const).filter(
    (name) => set[name] !== undefined && set[name] !== (wanted[name] ?? wanted['HTTPS_PROXY']),
  );
}

const CLOUDS = ['CLAUDE_CODE_USE_BEDROCK', 'CLAUDE_CODE_USE_VERTEX', 'CLAUDE_CODE_USE_FOUNDRY'];

/** Names the variable that leads Claude Code to another API than the one that the proxy reads; undefined without one. */
export async function findOtherApi(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const all: Readonly<Record<string, unknown>> = { ...env, ...(await settingsEnv(userSettingsFile(env))) };
  const base = String(all['ANTHROPIC_BASE_URL'] || 'https://api.anthropic.com');
  const isOther = !URL.canParse(base) || new URL(base).hostname !== 'api.anthropic.com';
  const cloud = CLOUDS.find((name) => /^(?:1|true|yes|on)$/i.test(String(all[name])));
  const found = isOther ? 'ANTHROPIC_BASE_URL' : cloud;
  return found && `${found} leads Claude Code past api.anthropic.com, so nothing is remembered`;
}

/** Whether `command` is Claude Code, in whatever directory. */
export function isClaude(command: string, claudeBin: string): boolean {
  return command === claudeBin || path.basename(command).replace(/\.(exe|cmd)$/i, '') === 'claude';
}

export function claudeDirectory(env: NodeJS.ProcessEnv): string {
  return env['CLAUDE_CONFIG_DIR'] || path.join(env['HOME'] || os.homedir(), '.claude');
}

export const userSettingsFile = (env: NodeJS.ProcessEnv): string => path.join(claudeDirectory(env), 'settings.json');

/** What Claude Code reads in every project of this user. */
export const userMemoryFile = (env: NodeJS.ProcessEnv): string => path.join(claudeDirectory(env), 'CLAUDE.md');

export async function settingsEnv(file: string): Promise<Record<string, unknown>> {
  // Missing, unreadable or not JSON: Claude Code ignores it too.
  const settings = parseJson((await readFileIfPresent(file).catch(() => null)) ?? '');
  return (Object(settings) as { env?: Record<string, unknown> }).env ?? {};
}
