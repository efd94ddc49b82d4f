/** What sends a child's traffic through a proxy. */
const PROXY = ['https_proxy', 'http_proxy', 'all_proxy'];

/** What ties a child to the session it was started from. */
const SESSION = [
  'CLAUDECODE',
  'CLAUDE_CODE_CHILD_SESSION',
  'CLAUDE_CODE_ENTRYPOINT',
  'CLAUDE_CODE_SESSION_ID',
  'CLAUDE_CODE_SSE_PORT',
  'CLAUDE_CODE_REMOTE',
  'CLAUDE_CODE_REMOTE_SESSION_ID',
  'CLAUDE_CODE_AGENT_NAME',
  'CLAUDE_CODE_TEAM_NAME',
  'CLAUDE_CODE_PARENT_SESSION_ID',
  'CLAUDE_CODE_EXTRA_BODY',
  'CLAUDE_CODE_GATEWAY_HINT_HEADERS',
  'CLAUDE_ENV_FILE',
  'CLAUDE_PROJECT_DIR',
  'CLAUDE_PLUGIN_ROOT',
  'CLAUDE_PLUGIN_DATA',
  'MAX_THINKING_TOKENS',
];

/** A child that only answers: nothing but the one request leaves it, nothing is remembered. */
const QUIET = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  CLAUDE_CODE_DISABLE_AUTO_MEMORY: '1',
  CLAUDE_CODE_DISABLE_TERMINAL_TITLE: '1',
  CLAUDE_CODE_SKIP_PROMPT_HISTORY: '1',
  DISABLE_AUTOUPDATER: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_ERROR_REPORTING: '1',
};

const CHILD_MARK = 'COMET_CC_CHILD';
const CHILD_HEADER = 'x-comet-cc-child: 1';

export interface ChildEnvOptions {
  /** The environment that the daemon was started with. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Our CA bundle; wherever it is named, the user's own file takes its place. */
  readonly bundleFile: string;
  /** The user's own `NODE_EXTRA_CA_CERTS`, '' for none. */
  readonly userCa: string;
  /** Proxy variables that the user had before ours; they stay in force for children. */
  readonly userProxy: Readonly<Record<string, string>>;
  readonly thinking: boolean;
}

/** Environment of a `claude -p` child: the user's, less proxy and session, marked as ours. */
export function childEnv(options: ChildEnvOptions): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.env)) {
    const dropped = PROXY.includes(name.toLowerCase()) || SESSION.includes(name) || /^COMET_CC_/.test(name);
    if (value !== undefined && !dropped) env[name] = value;
  }
  Object.assign(env, options.userProxy, QUIET, { [CHILD_MARK]: '1' });
  if (env['NODE_EXTRA_CA_CERTS'] === options.bundleFile) {
    if (options.userCa === '') delete env['NODE_EXTRA_CA_CERTS'];
    else env['NODE_EXTRA_CA_CERTS'] = options.userCa;
  }
  if (!options.thinking) env['MAX_THINKING_TOKENS'] = '0';
  const own = env['ANTHROPIC_CUSTOM_HEADERS'];
  env['ANTHROPIC_CUSTOM_HEADERS'] = own ? `${own}\n${CHILD_HEADER}` : CHILD_HEADER;
  return env;
}
