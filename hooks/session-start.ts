/**
 * SessionStart hook of Claude Code. Where the session uses the proxy, its Bash commands get the user's own proxy and CA
 * back, or none: Claude Code sources `CLAUDE_ENV_FILE` before each of them. Where it does not, the hook adds the
 * project's session context, which the proxy adds otherwise. Tells the user that memory is on, unless `comet-cc run` did.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { getHome, homePaths } from '../common/paths.ts';
import { isOurProxy } from '../common/request.ts';
import { toText } from '../common/text.ts';
import { callEngine, NO_ANSWER, runHook } from './engine-client.ts';

// biome-ignore lint/style/noProcessEnv: a hook is a process of its own, and this is its input
const env = process.env;
const PROXIES = ['HTTPS_PROXY', 'https_proxy'];
/** A session that is resumed or forked has its context in the transcript already. */
const FRESH = ['startup', 'clear', 'compact'];

restoreEnvironment();
await runHook(({ sessionId, projectDir, source }) => {
  const passes = PROXIES.some((name) => isOurProxy(env[name]));
  const adds = FRESH.includes(source) && !passes;
  const tells = (passes || adds) && source !== 'compact' && env['COMET_CC_TOLD'] === undefined;
  if (!adds && !tells) return Promise.resolve(NO_ANSWER);
  return callEngine('hooks/session-start', { sessionId, projectDir, adds, tells, passes });
});

function restoreEnvironment(): void {
  const file = env['CLAUDE_ENV_FILE'];
  if (file === undefined) return;
  try {
    const lines = assignments();
    if (lines.length > 0) appendFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 });
  } catch {
    // No message would help the session. Its commands then use the proxy of comet-cc, which tunnels.
  }
}

function assignments(): string[] {
  const paths = homePaths(getHome(env));
  const proxies = PROXIES.filter((name) => isOurProxy(env[name]));
  if (proxies.length === 0) return [];
  const url = readField(path.join(paths.runDir, 'upstream-proxy.json'), 'url');
  const ca = readField(path.join(paths.certsDir, 'bundle.json'), 'userFile');
  const isOurBundle = env['NODE_EXTRA_CA_CERTS'] === path.join(paths.certsDir, 'bundle.pem');
  return [
    ...proxies.map((name) => assignment(name, url)),
    ...(isOurBundle ? [assignment('NODE_EXTRA_CA_CERTS', ca)] : []),
  ];
}

/** A field of a JSON file in the home; '' when the user had no such setting. */
function readField(file: string, field: string): string {
  try {
    return toText((JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>)[field]);
  } catch {
    return ''; // No file: the user had no such setting.
  }
}

function assignment(name: string, value: string): string {
  return value === '' ? `unset ${name}` : `export ${name}='${value.replaceAll("'", "'\\''")}'`;
}
