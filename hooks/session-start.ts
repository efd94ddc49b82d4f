/**
 * SessionStart hook of Claude Code. Bash commands of the session get the user's own proxy and CA back, or none, where
 * the session itself goes through comet-cc: Claude Code sources `CLAUDE_ENV_FILE` before each of them. Where it does
 * not, the hook hands over what the last sessions of the project left; otherwise the proxy does that.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { homeOf, homePaths } from '../common/paths.ts';
import { ask, runHook } from './engine-client.ts';

// biome-ignore lint/style/noProcessEnv: a hook is a process of its own, and this is its input
const env = process.env;
const PROXIES = ['HTTPS_PROXY', 'https_proxy'];
/** A session that is resumed or forked has in its transcript what it was told at its start. */
const FRESH = ['startup', 'clear', 'compact'];

restore();
await runHook(({ sessionId, projectDir, source }) =>
  !FRESH.includes(source) || PROXIES.some((name) => isOurs(env[name]))
    ? Promise.resolve('')
    : ask('hooks/session-start', { sessionId, projectDir }),
);

function restore(): void {
  const file = env['CLAUDE_ENV_FILE'];
  if (file === undefined) return;
  try {
    const lines = restored();
    if (lines.length > 0) appendFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 });
  } catch {
    // Nothing that a hook could say would help the session; its commands then see our proxy, which tunnels.
  }
}

function restored(): string[] {
  const paths = homePaths(homeOf(env));
  const proxies = PROXIES.filter((name) => isOurs(env[name]));
  if (proxies.length === 0) return [];
  const url = noted(path.join(paths.runDir, 'upstream-proxy.json'), 'url');
  const ca = noted(path.join(paths.certsDir, 'bundle.json'), 'userFile');
  const isOurBundle = env['NODE_EXTRA_CA_CERTS'] === path.join(paths.certsDir, 'bundle.pem');
  return [
    ...proxies.map((name) => assignment(name, url)),
    ...(isOurBundle ? [assignment('NODE_EXTRA_CA_CERTS', ca)] : []),
  ];
}

function isOurs(proxy: string | undefined): boolean {
  if (proxy === undefined || !URL.canParse(proxy)) return false;
  const { username, hostname } = new URL(proxy);
  return username === 'comet-cc' && hostname === '127.0.0.1';
}

/** A field of one of our small notes; '' when the user had nothing there. */
function noted(note: string, field: string): string {
  try {
    const value = (JSON.parse(readFileSync(note, 'utf8')) as Record<string, unknown>)[field];
    return typeof value === 'string' ? value : '';
  } catch {
    return ''; // no note: the user had none
  }
}

function assignment(name: string, value: string): string {
  return value === '' ? `unset ${name}` : `export ${name}='${value.replaceAll("'", "'\\''")}'`;
}
