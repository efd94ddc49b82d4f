import { existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { runChild } from '../../common/run-process.ts';
import { parseJson } from '../../common/text.ts';

interface EndpointRequest {
  readonly url: string;
  /** JSON to POST; a GET without it. */
  readonly body?: string;
  /** The header's value, '' for none. */
  readonly authorization: string;
  readonly timeoutMs: number;
  /** A longer response is abandoned. */
  readonly maxChars: number;
}

export type EndpointReply =
  | { readonly how: 'answered'; readonly status: number; readonly body: string; readonly retryAfterMs: number }
  | { readonly how: 'timeout' | 'flooded' }
  /** `unreachable`: nothing was sent. `code` is a system or TLS code, never a message that may contain an address. */
  | { readonly how: 'unreachable' | 'broken'; readonly code: string };

const UNREACHABLE = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$|CERT/;
const DEFAULT_REST_MS = 60_000;

/**
 * Sends one JSON request. Redirects are not followed, so that the key reaches its own host only.
 *
 * @throws only the signal's reason, when aborted
 */
export async function postJson(request: EndpointRequest, signal: AbortSignal): Promise<EndpointReply> {
  const late = AbortSignal.timeout(request.timeoutMs);
  const over = new AbortController();
  try {
    const { url, body: sent, authorization } = request;
    const json = { 'content-type': 'application/json', accept: 'application/json' };
    const response = await fetch(url, {
      ...(sent === undefined ? { method: 'GET' } : { method: 'POST', body: sent }),
      redirect: 'manual',
      headers: authorization === '' ? json : { ...json, authorization },
      signal: AbortSignal.any([signal, late, over.signal]),
    });
    const body = await readBody(response, request.maxChars);
    if (body === null) return { how: 'flooded' };
    const retryAfterMs = getRest(response.headers.get('retry-after'));
    return { how: 'answered', status: response.status, body, retryAfterMs };
  } catch (error) {
    signal.throwIfAborted();
    if (late.aborted) return { how: 'timeout' };
    const code = getCode(error);
    return { how: UNREACHABLE.test(code) ? 'unreachable' : 'broken', code };
  } finally {
    over.abort();
  }
}

/** Null if it exceeds the limit. */
async function readBody(response: Response, maxChars: number): Promise<string | null> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.length > maxChars) return null;
  }
  return text + decoder.decode();
}

/** Seconds or a date; one minute if neither. */
function getRest(header: string | null): number {
  if (header === null || header.trim() === '') return DEFAULT_REST_MS;
  const seconds = Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header) - Date.now() : seconds * 1_000;
  return Number.isFinite(ms) ? Math.max(0, ms) : DEFAULT_REST_MS;
}

function getCode(error: unknown): string {
  const cause = (error as { readonly cause?: unknown }).cause;
  const causes = cause instanceof AggregateError ? cause.errors : [cause, error];
  const codes = causes.map((each) => (each as { readonly code?: unknown } | undefined)?.code);
  return codes.find((code): code is string => typeof code === 'string') ?? 'no code';
}

export interface ModelEndpointOptions extends EndpointKeyOptions {
  readonly model: string;
  readonly timeoutMs: number;
  /** Applied to every text before it is sent. */
  readonly redact: (text: string) => string;
}

/** Posts JSON with the endpoint's key. A refused key is read again by the next call. */
export function createKeyedPost(
  options: EndpointKeyOptions & { readonly timeoutMs: number },
  maxChars: number,
): (url: string, body: string, signal: AbortSignal) => Promise<EndpointReply | { how: 'keyless'; detail: string }> {
  const { timeoutMs } = options;
  const key = createEndpointKey(options);
  return async (url, body, signal) => {
    const keyResult = await key.read(signal);
    if (keyResult.kind === 'missing') return { how: 'keyless', detail: keyResult.detail };
    const authorization = keyResult.kind === 'key' ? `Bearer ${keyResult.key}` : '';
    const reply = await postJson({ url, body, authorization, timeoutMs, maxChars }, signal);
    if (reply.how === 'answered' && (reply.status === 401 || reply.status === 403)) key.refused();
    return reply;
  };
}

/** The body of a successful reply, or why there is none. */
export function readReply(
  reply: Awaited<ReturnType<ReturnType<typeof createKeyedPost>>>,
): { readonly body: unknown } | { readonly problem: string } {
  if (reply.how === 'keyless') return { problem: `has no key: ${reply.detail}` };
  if ('code' in reply) return { problem: `cannot be reached (${reply.code})` };
  if (reply.how !== 'answered') return { problem: `did not answer (${reply.how})` };
  if (reply.status !== 200) return { problem: `returned status ${reply.status}` };
  return { body: parseJson(reply.body) };
}

export interface EndpointKeyOptions {
  readonly baseUrl: string;
  /** Variable with the key; '' means `OPENAI_API_KEY` at api.openai.com and no key elsewhere. */
  readonly keyEnv: string;
  /** Shell command that prints the key; takes precedence over `keyEnv`. '' for none. */
  readonly keyCommand: string;
  /** The environment that the daemon was started with. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export type FoundKey =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'missing'; readonly detail: string };

const COMMAND_MS = 15_000;
const COMMAND_CHARS = 64_000;
/** Visible ASCII, as a header allows. */
const KEY = /^[\x21-\x7e]{1,8192}$/;

/** An endpoint's key, held in memory only: no file, no log, no program argument. */
export function createEndpointKey(options: EndpointKeyOptions) {
  // OpenAI's key is sent to OpenAI only, unless the user configures otherwise.
  const isOpenAi = new URL(options.baseUrl).hostname === 'api.openai.com';
  const variable = options.keyEnv || (isOpenAi ? 'OPENAI_API_KEY' : '');
  let key: FoundKey | null = null;
  return {
    async read(signal: AbortSignal): Promise<FoundKey> {
      if (key !== null) return key;
      const keyResult =
        options.keyCommand === '' ? fromVariable(variable, options.env) : await runKeyCommand(options, signal);
      if (keyResult.kind === 'key') key = keyResult;
      return keyResult;
    },
    /** Call when the endpoint refused the key; the next read runs the command again. */
    refused(): void {
      key = null;
    },
  };
}

function fromVariable(name: string, env: EndpointKeyOptions['env']): FoundKey {
  if (name === '') return { kind: 'none' };
  const key = env[name]?.trim() ?? '';
  if (key === '') return missing(`the variable ${name} is not set in the daemon's environment`);
  return KEY.test(key) ? { kind: 'key', key } : missing(`the variable ${name} holds no key`);
}

async function runKeyCommand({ keyCommand, env }: EndpointKeyOptions, signal: AbortSignal): Promise<FoundKey> {
  const isWindows = process.platform === 'win32';
  const file = isWindows ? (env['ComSpec'] ?? 'cmd.exe') : '/bin/sh';
  const args = isWindows ? ['/d', '/s', '/c', keyCommand] : ['-c', keyCommand];
  // The same for the daemon and for doctor.
  const cwd = existsSync(os.homedir()) ? os.homedir() : path.sep;
  const limits = { timeoutMs: COMMAND_MS, graceMs: 1_000, maxChars: COMMAND_CHARS };
  const end = await runChild({ file, args, input: '', env, cwd, ...limits }, signal);
  // The output may contain the key, so no error repeats it.
  if (end.how !== 'exited') return missing(`the key command was ended (${end.how})`);
  if (end.exitCode !== 0) return missing(`the key command ended with code ${end.exitCode}`);
  const key = end.stdout.trim();
  return KEY.test(key) ? { kind: 'key', key } : missing('the key command printed no key, or more than a key');
}

const missing = (detail: string): FoundKey => ({ kind: 'missing', detail });
