import { isOurProxy, PROXY_USER } from '../../common/request.ts';
import { bypassesProxy } from '../../proxy/guard/index.ts';

export { isOurProxy } from '../../common/request.ts';

const HINTS = 'CLAUDE_CODE_GATEWAY_HINT_HEADERS';
/** Message threads (2.1.332): requests without the earlier messages. A flag of the server decides where it is unset. */
const THREADS = 'CLAUDE_CODE_TETHER_LIVE';
export const PROXY_NAMES = 'HTTPS_PROXY https_proxy HTTP_PROXY http_proxy ALL_PROXY all_proxy'.split(' ');

export interface ProxyAccess {
  readonly port: number;
  readonly token: string;
  /** PEM file that Claude Code must trust. */
  readonly bundle: string;
}

/** The environment that leads Claude Code through the proxy; with lower-case names where the user sets them. */
export function clientEnvironment(access: ProxyAccess, user: NodeJS.ProcessEnv): Record<string, string> {
  const url = `http://${PROXY_USER}:${access.token}@127.0.0.1:${access.port}`;
  return {
    HTTPS_PROXY: url,
    // Claude Code prefers the lower-case name, so one that is set would win over ours.
    ...(user['https_proxy'] === undefined ? {} : { https_proxy: url }),
    NODE_EXTRA_CA_CERTS: access.bundle,
    [HINTS]: '1',
    [THREADS]: '0',
  };
}

/**
 * The user's environment without the variables that `env`, `run` or Claude Code's settings set for us.
 * @param bundle    our bundle, dropped from `NODE_EXTRA_CA_CERTS`
 * @param userExtra the file the user had there before, put back; null when there was none
 */
export function withoutOurs(env: NodeJS.ProcessEnv, bundle: string, userExtra: string | null): NodeJS.ProcessEnv {
  const clean = { ...env };
  for (const name of PROXY_NAMES) if (isOurProxy(clean[name])) delete clean[name];
  if (clean['NODE_EXTRA_CA_CERTS'] === bundle) {
    if (userExtra === null) delete clean['NODE_EXTRA_CA_CERTS'];
    else clean['NODE_EXTRA_CA_CERTS'] = userExtra;
  }
  return clean;
}

/** Whether `NO_PROXY` keeps https requests to `host` away from any proxy. */
export function noProxyCovers(env: Readonly<Record<string, unknown>>, host: string): boolean {
  return bypassesProxy(String(env['no_proxy'] ?? env['NO_PROXY'] ?? ''), { host, port: 443 });
}

export const SHELLS = ['bash', 'zsh', 'fish', 'powershell', 'json'] as const;
export type Shell = (typeof SHELLS)[number];

/** The shell named by `SHELL`; bash where it is unknown. */
export function getShell(env: NodeJS.ProcessEnv): Shell {
  const name = (env['SHELL'] ?? '').split(/[\\/]/).pop() ?? '';
  if (name === '' && env['PSModulePath'] !== undefined) return 'powershell';
  return SHELLS.find((shell) => shell === name && shell !== 'json') ?? 'bash';
}

/** Lines that set `variables` in `shell`; no value can end its quotes. */
export function shellLines(variables: Readonly<Record<string, string>>, shell: Shell): string {
  if (shell === 'json') return JSON.stringify(variables, null, 2);
  return Object.entries(variables)
    .map(([name, value]) => assignment(name, value, shell))
    .join('\n');
}

function assignment(name: string, value: string, shell: Exclude<Shell, 'json'>): string {
  switch (shell) {
    case 'bash':
    case 'zsh':
      return `export ${name}='${value.replaceAll("'", "'\\''")}'`;
    case 'fish':
      return `set -gx ${name} '${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
    case 'powershell':
      return `$env:${name} = '${value.replaceAll("'", "''")}'`;
  }
}
