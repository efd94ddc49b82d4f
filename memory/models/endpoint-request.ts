import { existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Config } from '../../common/config.ts';
import { runChild } from '../../common/run-process.ts';
import { clip, isRecord, parseJson, toRecord } from '../../common/text.ts';

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

type EndpointReply =
  | { readonly how: 'answered'; readonly status: number; readonly body: string; readonly retryAfterMs: number }
  | { readonly how: 'timeout' | 'flooded' }
  /** `unreachable`: nothing was sent. `code` is a system or TLS code, never a message that may contain an address. */
  | { readonly how: 'unreachable' | 'broken'; readonly code: string };

const UNREACHABLE = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$|CERT/;
const DEFAULT_REST_MS = 60_000;
const REFUSAL_CHARS = 300;

/**
 * Sends one JSON request. Redirects are not followed, so that the key reaches its own host only.
 * @throws only the signal's reason, when aborted
 */
async function postJson(request: EndpointRequest, signal: AbortSignal): Promise<EndpointReply> {
  const late = AbortSignal.timeout(request.timeoutMs);
  try {
    const { url, body: sent, authorization } = request;
    const json = { 'content-type': 'application/json', accept: 'application/json' };
    const response = await fetch(url, {
      ...(sent === undefined ? { method: 'GET' } : { method: 'POST', body: sent }),
      redirect: 'manual',
      headers: authorization === '' ? json : { ...json, authorization },
      signal: AbortSignal.any([signal, late]),
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
  }
}

/** Null if it exceeds the limit. */
async function readBody(response: Response, maxChars: number): Promise<string | null> {
  let text = '';
  for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part;
    if (text.length > maxChars) return null;
  }
  return text;
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

export interface ModelEndpointOptions extends EndpointKeyOptions, Pick<Config['embedding'], 'model' | 'timeoutMs'> {
  /** Applied to every text before it is sent. */
  readonly redact: (text: string) => string;
}

/** The body of a successful reply, or why there is none. */
export function readReply(reply: KeyedReply): { readonly body: unknown } | { readonly problem: string } {
  if (reply.how === 'keyless') return { problem: `has no key: ${reply.detail}` };
  if ('code' in reply) return { problem: `cannot be reached (${reply.code})` };
  if (reply.how !== 'answered') return { problem: `did not answer (${reply.how})` };
  if (reply.status !== 200) return { problem: `returned ${getRefusal(reply)}` };
  return { body: parseJson(reply.body) };
}

/** The status, and what the endpoint says of it. */
export function getRefusal({ status, body, hideKey }: KeyedAnswer): string {
  const { error } = toRecord(parseJson(body));
  const message = isRecord(error) ? error['message'] : error;
  const said = typeof message === 'string' ? hideKey(message) : '';
  return said === '' ? `status ${status}` : `status ${status}: ${clip(said, REFUSAL_CHARS)}`;
}

export interface EndpointKeyOptions extends Pick<Config['embedding'], 'baseUrl' | 'keyEnv' | 'keyCommand'> {
  /** The environment that the daemon was started with. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** '' where the endpoint takes none. */
type FoundKey = { readonly key: string } | { readonly missing: string };

type Answered = EndpointReply & { how: 'answered' };

/** `hideKey`: error bodies may quote the key. */
type KeyedAnswer = Answered & { readonly hideKey: (text: string) => string };

export type KeyedReply =
  | KeyedAnswer
  | Exclude<EndpointReply, Answered>
  | { readonly how: 'keyless'; readonly detail: string };

const COMMAND_MS = 15_000;
const COMMAND_CHARS = 64_000;
/** Visible ASCII, as a header allows. */
const KEY = /^[\x21-\x7e]{1,8192}$/;

/**
 * Sends requests with the endpoint's key, which is held in memory only: no file, no log, no program argument. A refused
 * key is read again by the next request.
 */
export function createKeyedRequest(options: EndpointKeyOptions, maxChars: number) {
  const { baseUrl, keyEnv, keyCommand, env } = options;
  // OpenAI's key is sent to OpenAI only, unless the user configures otherwise.
  const variable = keyEnv || (new URL(baseUrl).hostname === 'api.openai.com' ? 'OPENAI_API_KEY' : '');
  let key = '';

  async function findKey(signal: AbortSignal): Promise<FoundKey> {
    if (key !== '') return { key };
    return keyCommand === '' ? fromVariable(variable, env) : await runKeyCommand(options, signal);
  }

  type Request = Pick<EndpointRequest, 'url' | 'body' | 'timeoutMs'>;
  return async (request: Request, signal: AbortSignal): Promise<KeyedReply> => {
    const found = await findKey(signal);
    if ('missing' in found) return { how: 'keyless', detail: found.missing };
    const used = found.key;
    key = used;
    const reply = await postJson({ ...request, authorization: used === '' ? '' : `Bearer ${used}`, maxChars }, signal);
    if (reply.how !== 'answered') return reply;
    if (reply.status === 401 || reply.status === 403) key = '';
    return { ...reply, hideKey: (text) => (used === '' ? text : text.replaceAll(used, '[key]')) };
  };
}

function fromVariable(name: string, env: EndpointKeyOptions['env']): FoundKey {
  if (name === '') return { key: '' };
  const key = env[name]?.trim() ?? '';
  if (key === '') return { missing: `the variable ${name} is not set in the daemon's environment` };
  return KEY.test(key) ? { key } : { missing: `the variable ${name} holds no key` };
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
  if (end.how !== 'exited') return { missing: `the key command was ended (${end.how})` };
  if (end.exitCode !== 0) return { missing: `the key command ended with code ${end.exitCode}` };
  const key = end.stdout.trim();
  return KEY.test(key) ? { key } : { missing: 'the key command printed no key, or more than a key' };
}
