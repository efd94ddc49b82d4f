import { readFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { writeFileAtomic } from '../../common/files.ts';

/**
 * Arguments that keep the `env` of Claude Code's settings files from overriding `variables`.
 *
 * Claude Code lets its settings win over the process environment. Where one of the files sets something else than
 * we need, ours go into a settings file for this process alone; a token has no place among arguments.
 *
 * @returns `args`, with `--settings FILE` in front where that is needed
 */
export async function withSettings(
  args: readonly string[],
  options: {
    readonly variables: Readonly<Record<string, string>>;
    readonly env: NodeJS.ProcessEnv;
    readonly cwd: string;
    readonly file: string;
  },
): Promise<{ readonly args: readonly string[]; readonly overridden: boolean }> {
  const set = await Promise.all(settingsFiles(options.env, options.cwd).map(settingsEnv));
  const names = ['HTTPS_PROXY', 'https_proxy', 'NODE_EXTRA_CA_CERTS'] as const;
  const clashes = names.filter((name) => {
    const wanted = options.variables[name] ?? (name === 'https_proxy' ? options.variables['HTTPS_PROXY'] : undefined);
    return set.some((env) => env[name] !== undefined && env[name] !== wanted);
  });
  if (clashes.length === 0) return { args, overridden: false };
  // The user's own --settings is theirs; two cannot be given.
  if (args.some((arg) => arg === '--settings' || arg.startsWith('--settings='))) return { args, overridden: true };
  const proxy = options.variables['HTTPS_PROXY'] as string;
  const env = { ...options.variables, ...(clashes.includes('https_proxy') ? { https_proxy: proxy } : {}) };
  await writeFileAtomic(options.file, JSON.stringify({ env }));
  return { args: ['--settings', options.file, ...args], overridden: false };
}

/** Whether `command` is Claude Code, whatever folder it stands in. */
export function isClaude(command: string, claudeBin: string): boolean {
  const name = path.basename(command).replace(/\.(exe|cmd)$/i, '');
  return name === 'claude' || command === claudeBin;
}

/** Claude Code's settings of this user. */
export function userSettingsFile(env: NodeJS.ProcessEnv): string {
  const dir = env['CLAUDE_CONFIG_DIR'] || path.join(env['HOME'] || os.homedir(), '.claude');
  return path.join(dir, 'settings.json');
}

function settingsFiles(env: NodeJS.ProcessEnv, cwd: string): string[] {
  return [
    userSettingsFile(env),
    path.join(cwd, '.claude', 'settings.json'),
    path.join(cwd, '.claude', 'settings.local.json'),
  ];
}

async function settingsEnv(file: string): Promise<Record<string, unknown>> {
  try {
    const settings = JSON.parse(await readFile(file, 'utf8')) as { env?: Record<string, unknown> } | null;
    return settings?.env ?? {};
  } catch {
    // Missing, unreadable or no JSON: then it sets nothing for Claude Code either.
    return {};
  }
}
