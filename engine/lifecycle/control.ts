import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import net from 'node:net';
import { CometError } from '../../common/errors.ts';
import { builtFile, isPipe, VERSION } from '../../common/paths.ts';
import { parseJson, sha256 } from '../../common/text.ts';
import type { Guard } from '../../proxy/guard/index.ts';

/** The guard's answer over its control socket; one of another build may lack some fields. */
export type GuardStatus = Omit<Status, Later> & Partial<Pick<Status, Later>>;
type Later = 'build' | 'upstream_proxy' | 'upstream_proxy_trouble' | 'pass_through' | 'program';
type Status = ReturnType<Guard['status']>;

type GuardRequest =
  | { readonly op: 'status' }
  | { readonly op: 'wait_healthy'; readonly timeout_ms: number }
  | { readonly op: 'session' }
  | { readonly op: 'stop'; readonly now?: boolean; readonly restarts?: boolean }
  | { readonly op: 'start'; readonly env: NodeJS.ProcessEnv };

const MAX_REPLY_BYTES = 64 * 1024;
/** A busy machine may give the guard no time for seconds. */
const ANSWER_MS = 5_000;

/** Whether `file` is a socket of this user. @throws CometError `unsafe_file` when something else is at that path */
export async function socketPresent(file: string): Promise<boolean> {
  // Only a connection shows whether a pipe has a listener.
  if (isPipe(file)) return true;
  const stats = await lstat(file).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT' || cause.code === 'ENOTDIR') return null;
    throw new CometError('unsafe_file', `${file} cannot be inspected; check the permissions of its folder`, { cause });
  });
  if (stats === null) return false;
  if (!stats.isSocket() || (process.getuid && stats.uid !== process.getuid()))
    throw new CometError('unsafe_file', `${file} is not a socket of this user; remove it if you know what it is`);
  return true;
}

/** Status of the guard of this home; null when none answers. */
export function guardStatus(socket: string): Promise<GuardStatus | null> {
  return askStatus(socket, { op: 'status' }, ANSWER_MS);
}

/** The status once the engine is healthy, or after `timeoutMs`; null when no guard answers. */
export function waitHealthy(socket: string, timeoutMs: number): Promise<GuardStatus | null> {
  return askStatus(socket, { op: 'wait_healthy', timeout_ms: timeoutMs }, timeoutMs + ANSWER_MS);
}

async function askStatus(socket: string, request: GuardRequest, timeoutMs: number): Promise<GuardStatus | null> {
  const reply = await askGuard(socket, request, timeoutMs);
  if (reply === null) return null;
  const { nonce, pid, port, engine } = Object(reply) as Partial<GuardStatus>;
  const types = [nonce, pid, port, engine].map((value) => typeof value);
  if (types.join() === 'string,number,number,object') return reply as GuardStatus;
  throw new CometError('daemon_unhealthy', 'the guard speaks another version; run comet-cc restart');
}

/**
 * Exchanges one line of JSON.
 * @returns null if no process listens there
 * @throws CometError `unsafe_file`, or `daemon_unhealthy` when the answer is late or no JSON
 */
export async function askGuard(socket: string, request: GuardRequest, timeoutMs: number): Promise<unknown> {
  if (!(await socketPresent(socket))) return null;
  const text = await exchangeLine(socket, JSON.stringify(request), timeoutMs);
  const reply = text === null ? null : parseJson(text);
  if (reply !== undefined) return reply;
  throw new CometError('daemon_unhealthy', 'the guard gave no sensible answer; try comet-cc restart');
}

async function exchangeLine(socket: string, line: string, timeoutMs: number): Promise<string | null> {
  const late = AbortSignal.timeout(timeoutMs);
  const connection = net.connect({ path: socket, signal: late }).setEncoding('utf8');
  let text = '';
  try {
    connection.write(`${line}\n`);
    for await (const chunk of connection as AsyncIterable<string>) {
      text += chunk;
      const end = text.indexOf('\n');
      if (end >= 0) return text.slice(0, end);
      if (text.length > MAX_REPLY_BYTES) return '';
    }
    return text === '' ? null : text;
  } catch {
    if (late.aborted) throw new CometError('daemon_unhealthy', 'the guard does not answer; see comet-cc logs');
    // A refused or cut connection means that no guard listens, even if its socket is still on disk.
    return null;
  } finally {
    connection.destroy();
  }
}

/**
 * Stays connected until the other side closes or `signal` aborts. False when nothing listened.
 * @param greeting  sent once connected
 */
export async function heldOpen(socket: string, signal: AbortSignal, greeting?: GuardRequest): Promise<boolean> {
  let connected = false;
  const connection = net.connect({ path: socket, signal }).unref();
  connection.once('connect', () => {
    connected = true;
    if (greeting !== undefined) connection.write(`${JSON.stringify(greeting)}\n`);
  });
  connection.on('error', () => {});
  connection.resume();
  await new Promise((resolve) => connection.once('close', resolve));
  return connected;
}

/**
 * The nonce of the guard behind `port`: together they identify a daemon. The request carries the token, so use only a
 * port that the guard's own socket named.
 * @returns null when nothing listens there, or the listener does not know our token
 */
export async function portNonce(port: number, token: string): Promise<string | null> {
  // Loaded on use: the statusline, which loads this file, must start quickly.
  const http = await import('node:http');
  const { text } = await import('node:stream/consumers');
  const request = http.get({
    host: '127.0.0.1',
    port,
    path: '/.comet-cc/nonce',
    headers: { 'proxy-authorization': `Basic ${Buffer.from(`comet-cc:${token}`).toString('base64')}` },
    signal: AbortSignal.timeout(ANSWER_MS),
    agent: false,
  });
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const body = (await text(response)).trim();
    return response.statusCode === 200 && body !== '' ? body : null;
  } catch {
    return null;
  }
}

/** Why the daemon's guard runs other code than the guard of this command, '' when it does not. An engine restarts by itself. */
export function otherBuild(
  guard: Pick<GuardStatus, 'version' | 'build'>,
  own = { version: VERSION, build: sha256(readFileSync(builtFile('bin', 'guard.js'))) },
): string {
  if (guard.build === own.build) return '';
  if (guard.version !== own.version) return `the daemon is comet-cc ${guard.version}, this command is ${own.version}`;
  return 'the daemon holds its port with another build of comet-cc than this command';
}
