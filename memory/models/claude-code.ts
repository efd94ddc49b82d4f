import { mkdirSync } from 'node:fs';
import { z } from 'zod';
import { type ChildEnd, runChild } from '../../common/run-process.ts';
import { parseJson, toRecord } from '../../common/text.ts';
import {
  type Attempt,
  type CallOptions,
  createLlmClient,
  type FailureKind,
  failedAttempt,
  type ModelLimits,
  type PromptCall,
} from './client.ts';

export interface ClaudeCliOptions extends CallOptions {
  /** A name on PATH or a path. */
  readonly bin: string;
  readonly models: ModelLimits;
  readonly environment: ChildEnvOptions;
  /** An empty private directory, created if missing. */
  readonly cwd: string;
  readonly graceMs?: number;
}

const STDOUT_CHARS = 1_000_000;

/** Runs `claude -p` on the user's own login. */
export function createClaudeCli(options: ClaudeCliOptions) {
  return createLlmClient({
    ...options,
    name: 'claude',
    provider: 'claude -p',
    async attempt(call, signal) {
      const end = await spawn(options, call, signal);
      if (end.how === 'exited') return readClaudeOutput(end.stdout, end.stderr);
      return failedAttempt(end.how === 'aborted' ? 'failed' : end.how, getDetail(end, call));
    },
  });
}

function spawn(options: ClaudeCliOptions, call: PromptCall, signal: AbortSignal): Promise<ChildEnd> {
  const { bin: file, cwd, graceMs = 2_000 } = options;
  mkdirSync(cwd, { recursive: true, mode: 0o700 });
  const env = childEnv(options.environment, call);
  const limits = { timeoutMs: call.timeoutMs, graceMs, maxChars: STDOUT_CHARS };
  return runChild({ file, args: getArgs(call), input: call.prompt.user, env, cwd, ...limits }, signal);
}

/** The conversation goes to stdin, never into argv. Models of 5.5 think at every effort: the least is `low`. */
function getArgs({ model, prompt, thinking }: PromptCall): string[] {
  const isolated = ['--tools', '', '--setting-sources', '', '--strict-mcp-config', '--disable-slash-commands'];
  const shape = ['--system-prompt', prompt.system, '--json-schema', JSON.stringify(prompt.schema)];
  const output = ['--output-format', 'json', '--no-session-persistence', '--settings', '{"verbose":false}'];
  return ['-p', '--model', model, ...(thinking ? [] : ['--effort', 'low']), ...isolated, ...shape, ...output];
}

function getDetail(end: ChildEnd, call: PromptCall): string {
  if (end.how === 'timeout') return `killed after ${call.timeoutMs} ms`;
  if (end.how === 'flooded') return `killed after ${STDOUT_CHARS} characters on stdout`;
  return 'program not found; install Claude Code or set COMET_CC_CLAUDE_BIN';
}

const PROXY = ['https_proxy', 'http_proxy', 'all_proxy'];

/** Variables that tie a child to the session that started it. */
const SESSION = [
  ...'CLAUDECODE CLAUDE_CODE_CHILD_SESSION CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SESSION_ID'.split(' '),
  ...'CLAUDE_CODE_EFFORT_LEVEL CLAUDE_CODE_SSE_PORT CLAUDE_CODE_REMOTE CLAUDE_CODE_REMOTE_SESSION_ID'.split(' '),
  ...'CLAUDE_CODE_AGENT_NAME CLAUDE_CODE_TEAM_NAME CLAUDE_CODE_PARENT_SESSION_ID CLAUDE_CODE_EXTRA_BODY'.split(' '),
  ...'CLAUDE_CODE_GATEWAY_HINT_HEADERS CLAUDE_ENV_FILE CLAUDE_PROJECT_DIR CLAUDE_PLUGIN_ROOT'.split(' '),
  ...'CLAUDE_PLUGIN_DATA MAX_THINKING_TOKENS'.split(' '),
];

/** The child sends the one request only, without a file that the conversation names, and stores nothing. */
const QUIET = {
  CLAUDE_CODE_DISABLE_ATTACHMENTS: '1',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  CLAUDE_CODE_DISABLE_AUTO_MEMORY: '1',
  CLAUDE_CODE_DISABLE_TERMINAL_TITLE: '1',
  CLAUDE_CODE_SKIP_PROMPT_HISTORY: '1',
  // No other call has the same prompt, and writing it to the cache costs a quarter of its price.
  DISABLE_PROMPT_CACHING: '1',
  // One for a login to renew; more hide its end, or an overload, behind our timeout.
  CLAUDE_CODE_MAX_RETRIES: '1',
  DISABLE_AUTOUPDATER: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_ERROR_REPORTING: '1',
};

const CHILD_MARK = 'COMET_CC_CHILD';
const CHILD_HEADER = 'x-comet-cc-child: 1';

interface ChildEnvOptions {
  /** The environment that the daemon was started with. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Our CA bundle; replaced by the user's own CA file. */
  readonly bundleFile: string;
  /** The user's own `NODE_EXTRA_CA_CERTS`, '' for none. */
  readonly userCa: string;
  /** The user's own proxy variables, which children keep. */
  readonly userProxy: Readonly<Record<string, string>>;
}

/** The user's environment without our proxy and the session, marked as ours. */
function childEnv(options: ChildEnvOptions, { thinking, timeoutMs }: PromptCall): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.env)) {
    const dropped = PROXY.includes(name.toLowerCase()) || SESSION.includes(name) || /^COMET_CC_/.test(name);
    if (value !== undefined && !dropped) env[name] = value;
  }
  // With it a child that is left alone, as guard and engine were killed, ends too.
  Object.assign(env, options.userProxy, QUIET, { [CHILD_MARK]: '1', API_TIMEOUT_MS: String(timeoutMs) });
  if (env['NODE_EXTRA_CA_CERTS'] === options.bundleFile) {
    if (options.userCa === '') delete env['NODE_EXTRA_CA_CERTS'];
    else env['NODE_EXTRA_CA_CERTS'] = options.userCa;
  }
  if (!thinking) env['MAX_THINKING_TOKENS'] = '0';
  const own = env['ANTHROPIC_CUSTOM_HEADERS'];
  env['ANTHROPIC_CUSTOM_HEADERS'] = own ? `${own}\n${CHILD_HEADER}` : CHILD_HEADER;
  return env;
}

const count = z.number().nonnegative().catch(0);
const KINDS = ['input_tokens', 'output_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'] as const;

const Result = z.looseObject({
  type: z.literal('result'),
  subtype: z.string().catch(''),
  is_error: z.boolean().catch(false),
  result: z.unknown().optional(),
  structured_output: z.unknown().optional(),
  errors: z.unknown().optional(),
  api_error_status: z.unknown().optional(),
  total_cost_usd: count,
  usage: z.unknown().optional(),
});
type Result = z.infer<typeof Result>;

/** Parses the output of `claude -p --output-format json`: one object, or an array that contains the result. */
function readClaudeOutput(stdout: string, stderr: string): Attempt {
  const result = findResult(stdout);
  if (result === null) {
    const output = `${stderr}\n${stdout}`.trim();
    return failedAttempt(getFailure(output), output || 'no output');
  }
  const tokens = KINDS.reduce((sum, kind) => sum + count.parse(toRecord(result.usage)[kind]), 0);
  const used = { tokens, costUsd: result.total_cost_usd };
  const value = result.structured_output ?? parsed(result.result);
  if (!result.is_error && value !== undefined && typeof value === 'object' && value !== null)
    return { kind: 'answer', value, ...used };
  const status = result.api_error_status ?? '';
  const messages = [result.result, result.errors, status, stderr].flat().map(getText).filter(Boolean).join(' · ');
  const detail = result.is_error ? messages || `no structured answer (${result.subtype})` : 'no JSON in the answer';
  const kind = /structured_output/.test(result.subtype) ? 'unstructured' : 'failed';
  return failedAttempt(result.is_error && kind === 'failed' ? getFailure(detail) : kind, readable(detail), used);
}

/** Of an error body of the API, its message. */
function readable(detail: string): string {
  return detail.replace(/\{"type":"error",.{0,400}?"message":"([^"]{1,400})".{0,200}?\}(?= · |$)/g, '$1');
}

const RATE_LIMITED =
  /rate.?limit|usage limit|hit your .{0,80}limit|limit reached|too many requests|\b429\b|overloaded|\b529\b/i;

function getFailure(message: string): FailureKind {
  if (/\/login|not logged in|log in to|invalid api key|oauth token|authentication_error|\b401\b/i.test(message))
    return 'not_logged_in';
  return RATE_LIMITED.test(message) ? 'rate_limited' : 'failed';
}

function findResult(stdout: string): Result | null {
  const whole = parsed(stdout.trim());
  const candidates = whole === undefined ? stdout.trim().split('\n').map(parsed) : [whole];
  const results = candidates.flat().flatMap((value) => Result.safeParse(value).data ?? []);
  return results.at(-1) ?? null;
}

function parsed(value: unknown): unknown {
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  const isFenced = text.startsWith('```') && text.endsWith('\n```');
  return parseJson(isFenced ? text.slice(text.indexOf('\n'), -3) : text);
}

function getText(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
