import { rm } from 'node:fs/promises';
import path from 'node:path';
import { bundleFile, userCaFile } from '../../certs/index.ts';
import type { Config } from '../../common/config.ts';
import { readFileIfPresent, writePrivateFile } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { parseJson } from '../../common/text.ts';
import { settingsEnv, userSettingsFile } from '../../install/index.ts';
import { formatProxy, parseUpstreamProxy } from '../../proxy/guard/index.ts';
import { isOurProxy, noProxyCovers, PROXY_NAMES } from './client-env.ts';
import type { GuardStatus } from './control.ts';

/** Tells the daemon to use no proxy, even if its environment names one. */
export const STRAIGHT = 'off';
/** Set by the service manager's unit, whose environment lacks the variables of the user's shell. */
const SERVICE_MARK = 'COMET_CC_SERVICE';

/** In the order in which Claude Code takes them, which uses HTTP_PROXY for https too. */
const NAMES = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'] as const;
const SET = [...PROXY_NAMES, 'NO_PROXY', 'no_proxy', 'NODE_EXTRA_CA_CERTS'];

/** The environment as Claude Code has it: proxy and CA of its settings win, unless they are ours. */
export async function claudeEnv(env: NodeJS.ProcessEnv, { certsDir }: HomePaths): Promise<NodeJS.ProcessEnv> {
  const set = Object.entries(await settingsEnv(userSettingsFile(env))).filter(
    ([name, value]) =>
      SET.includes(name) && !(env[name] && (isOurProxy(String(value)) || value === bundleFile(certsDir))),
  );
  return { ...env, ...Object.fromEntries(set.map(([name, value]) => [name, String(value)])) };
}

/**
 * The proxy towards upstream: `upstreamProxy`, else the one of the environment. Where the environment names our proxy,
 * the one it named before, which a private file in `run/` keeps. `url` has the credentials that the user gave it, so it is
 * never in arguments or logs; '' without a proxy. `problem` is why the named proxy is not used, '' where it is.
 */
export async function userProxy(paths: HomePaths, config: Config, env: NodeJS.ProcessEnv) {
  const noProxy = env['no_proxy'] ?? env['NO_PROXY'] ?? '';
  const { upstreamProxy: set } = config;
  if (set !== '') return { url: set === STRAIGHT ? '' : set, noProxy, problem: '' };
  const url = findUserProxy(env);
  if (url !== '' && parseUpstreamProxy(url) === null)
    return { url: '', noProxy, problem: 'HTTPS_PROXY is no http:// or https:// proxy, so it is not used' };
  if (url === '' && (env[SERVICE_MARK] === '1' || NAMES.some((name) => isOurProxy(env[name])))) {
    const before = await remembered(paths);
    return { url: before.url, noProxy: noProxy || before.noProxy, problem: '' };
  }
  await remember(paths, url, noProxy);
  return { url, noProxy, problem: '' };
}

/** What a running daemon uses instead of the proxy that this shell names; '' where it uses that one, or none is named. */
export function otherProxy(guard: GuardStatus, { upstreamProxy }: Config, env: NodeJS.ProcessEnv): string {
  const named = upstreamProxy === STRAIGHT ? null : parseUpstreamProxy(upstreamProxy || findUserProxy(env));
  const { upstream_proxy: used, upstream } = guard;
  if (named === null || used === undefined || noProxyCovers(env, new URL(upstream).hostname)) return '';
  const name = formatProxy(named);
  return used === name ? '' : `the daemon still uses ${used ?? 'no proxy'}, not ${name}; comet-cc restart changes that`;
}

/** What `claude -p` gets: the user's own proxies, not ours. */
export async function getClaudeEnvironment(env: NodeJS.ProcessEnv, paths: HomePaths) {
  const own = PROXY_NAMES.map((name) => [name, env[name] ?? ''] as const);
  return {
    env,
    bundleFile: bundleFile(paths.certsDir),
    userCa: (await userCaFile(paths)) ?? '',
    userProxy: Object.fromEntries(own.filter(([, value]) => value !== '' && !isOurProxy(value))),
  };
}

/** Remembers the proxy of a shell before ours replaces it. */
export async function rememberProxy(paths: HomePaths, shell: NodeJS.ProcessEnv): Promise<void> {
  const env = await claudeEnv(shell, paths);
  const url = findUserProxy(env);
  if (url === '' || parseUpstreamProxy(url) === null) return;
  await remember(paths, url, env['no_proxy'] ?? env['NO_PROXY'] ?? '');
}

function findUserProxy(env: NodeJS.ProcessEnv): string {
  return withScheme(NAMES.map((name) => env[name] ?? '').find((value) => value !== '' && !isOurProxy(value)) ?? '');
}

/** Programs take `proxy.example:3128` as well, the setting does not. */
const withScheme = (url: string): string => (url === '' || url.includes('://') ? url : `http://${url}`);

const rememberedFile = (paths: HomePaths): string => path.join(paths.runDir, 'upstream-proxy.json');

async function remember(paths: HomePaths, url: string, noProxy: string): Promise<void> {
  const file = rememberedFile(paths);
  if (url === '') return await rm(file, { force: true });
  await writePrivateFile(file, `${JSON.stringify({ url, noProxy })}\n`);
}

/** The proxy that ours replaced, '' where there was none. */
export async function remembered(paths: HomePaths): Promise<{ readonly url: string; readonly noProxy: string }> {
  const text = await readFileIfPresent(rememberedFile(paths));
  // A damaged file counts as none; the next shell that names a proxy rewrites it.
  const { url = '', noProxy = '' } = Object(parseJson(text ?? '')) as { url?: unknown; noProxy?: unknown };
  return { url: parseUpstreamProxy(String(url)) === null ? '' : withScheme(String(url)), noProxy: String(noProxy) };
}
