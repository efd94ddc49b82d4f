import { runChild } from '../../common/run-process.ts';

export interface EndpointRequest {
  readonly url: string;
  /** JSON to post; without it the address is read. */
  readonly body?: string;
  /** The header's value, '' for none. */
  readonly authorization: string;
  /** From the first byte sent to the last one received. */
  readonly timeoutMs: number;
  /** A longer answer is not read to its end. */
  readonly maxChars: number;
}

export type EndpointReply =
  | { readonly how: 'answered'; readonly status: number; readonly body: string; readonly retryAfterMs: number }
  | { readonly how: 'timeout' | 'flooded' }
  /** `unreachable`: nothing was sent. `code` is the system's or TLS's, never a message with an address in it. */
  | { readonly how: 'unreachable' | 'broken'; readonly code: string };

const UNREACHABLE = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|.*CERT.*)$/;
const DEFAULT_REST_MS = 60_000;

/**
 * One JSON request. Follows no redirect: a key goes to the host that it was given for and to no other.
 *
 * @throws the signal's reason when it aborts, nothing else
 */
export async function postJson(request: EndpointRequest, signal: AbortSignal): Promise<EndpointReply> {
  const late = AbortSignal.timeout(request.timeoutMs);
  const over = new AbortController();
  try {
    const response = await fetch(request.url, {
      method: request.body === undefined ? 'GET' : 'POST',
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        ...(request.authorization === '' ? {} : { authorization: request.authorization }),
      },
      ...(request.body === undefined ? {} : { body: request.body }),
      signal: AbortSignal.any([signal, late, over.signal]),
    });
    const body = await readBody(response, request.maxChars);
    if (body === null) return { how: 'flooded' };
    const retryAfterMs = restOf(response.headers.get('retry-after'));
    return { how: 'answered', status: response.status, body, retryAfterMs };
  } catch (error) {
    signal.throwIfAborted();
    if (late.aborted) return { how: 'timeout' };
    const code = codeOf(error);
    return { how: UNREACHABLE.test(code) ? 'unreachable' : 'broken', code };
  } finally {
    over.abort();
  }
}

/** Null when it is longer than allowed. */
async function readBody(response: Response, maxChars: number): Promise<string | null> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.length > maxChars) return null;
  }
  return text + decoder.decode();
}

/** Seconds or a date; a minute where it is neither. */
function restOf(header: string | null): number {
  if (header === null || header.trim() === '') return DEFAULT_REST_MS;
  const seconds = Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header) - Date.now() : seconds * 1_000;
  return Number.isFinite(ms) ? Math.max(0, ms) : DEFAULT_REST_MS;
}

function codeOf(error: unknown): string {
  const cause = (error as { readonly cause?: unknown }).cause;
  const causes = cause instanceof AggregateError ? cause.errors : [cause, error];
  const codes = causes.map((each) => (each as { readonly code?: unknown } | undefined)?.code);
  return codes.find((code): code is string => typeof code === 'string') ?? 'no code';
}

export interface EndpointKeyOptions {
  readonly baseUrl: string;
  /** Variable that holds the key; '' is `OPENAI_API_KEY` at api.openai.com and no key anywhere else. */
  readonly keyEnv: string;
  /** Shell command that prints the key; goes before `keyEnv`. '' for none. */
  readonly keyCommand: string;
  /** The environment that the daemon was started with. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where the command runs. */
  readonly cwd: string;
}

export type FoundKey =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'missing'; readonly detail: string };

/** The key of an endpoint. It is held in memory and nowhere else: no file, no log, no argument of a program. */
interface EndpointKey {
  read(signal: AbortSignal): Promise<FoundKey>;
  /** It was refused: the command is asked again next time. */
  refused(): void;
}

const COMMAND_MS = 15_000;
const COMMAND_CHARS = 64_000;
/** Visible ASCII: what a header takes. */
const KEY = /^[\x21-\x7e]{1,8192}$/;

export function createEndpointKey(options: EndpointKeyOptions): EndpointKey {
  const variable = keyVariable(options);
  let known: FoundKey | null = null;
  return {
    async read(signal) {
      if (known !== null) return known;
      const found = options.keyCommand === '' ? fromVariable(variable, options.env) : await asked(options, signal);
      if (found.kind === 'key') known = found;
      return found;
    },
    refused() {
      known = null;
    },
  };
}

/** A key is only ever sent where it belongs: OpenAI's goes to nobody else unless the user says so. */
function keyVariable({ baseUrl, keyEnv }: Pick<EndpointKeyOptions, 'baseUrl' | 'keyEnv'>): string {
  if (keyEnv !== '') return keyEnv;
  return new URL(baseUrl).hostname === 'api.openai.com' ? 'OPENAI_API_KEY' : '';
}

function fromVariable(name: string, env: EndpointKeyOptions['env']): FoundKey {
  if (name === '') return { kind: 'none' };
  const key = env[name]?.trim() ?? '';
  if (key === '') return missing(`the variable ${name} is not set where the daemon was started`);
  return KEY.test(key) ? { kind: 'key', key } : missing(`the variable ${name} holds no key`);
}

async function asked({ keyCommand, env, cwd }: EndpointKeyOptions, signal: AbortSignal): Promise<FoundKey> {
  const isWindows = process.platform === 'win32';
  const run = {
    file: isWindows ? (env['ComSpec'] ?? 'cmd.exe') : '/bin/sh',
    args: isWindows ? ['/d', '/s', '/c', keyCommand] : ['-c', keyCommand],
    input: '',
    env: Object.fromEntries(Object.entries(env).filter((pair): pair is [string, string] => pair[1] !== undefined)),
    cwd,
    timeoutMs: COMMAND_MS,
    graceMs: 1_000,
    maxChars: COMMAND_CHARS,
  };
  const end = await runChild(run, signal);
  // Whatever it printed may be the key: nothing of it is repeated.
  if (end.how !== 'exited') return missing(`the key command was ended (${end.how})`);
  if (end.exitCode !== 0) return missing(`the key command ended with code ${end.exitCode}`);
  const key = end.stdout.trim();
  return KEY.test(key) ? { kind: 'key', key } : missing('the key command printed no key, or more than a key');
}

function missing(detail: string): FoundKey {
  return { kind: 'missing', detail };
}
