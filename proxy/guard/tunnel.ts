import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import net, { isIPv4, isIPv6 } from 'node:net';
import type { Duplex } from 'node:stream';

export interface Authority {
  /** Lower case; an IPv6 address without its brackets. */
  readonly host: string;
  readonly port: number;
}

/** Limit for the headers of a request or response: gateways add long cookies and tokens. */
export const MAX_HEAD_BYTES = 65_536;
const PORT = /^[1-9][0-9]{0,4}$/;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const NUMBER = /^(?:[0-9]+|0x[0-9a-f]*)$/;

/**
 * Parses the target of a CONNECT. Accepts only `host:port` without scheme, user, path, zone or blanks.
 * @returns null unless it is a host name, an IPv4 address or a bracketed IPv6 address, with a port from 1 to 65535
 * Source: RFC 9112 §3.2.3; a host whose last label is a number is an IPv4 address or invalid (WHATWG URL).
 */
export function parseAuthority(text: string): Authority | null {
  const colon = text.lastIndexOf(':');
  if (colon < 1 || text.length > 300) return null;
  const portText = text.slice(colon + 1);
  const port = Number(portText);
  if (!PORT.test(portText) || port > 65_535) return null;
  const host = parseHost(text.slice(0, colon).toLowerCase());
  return host === null ? null : { host, port };
}

function parseHost(text: string): string | null {
  if (text.startsWith('[')) {
    const inner = text.slice(1, -1);
    return text.endsWith(']') && !inner.includes('%') && isIPv6(inner) ? inner : null;
  }
  if (isIPv4(text)) return text;
  const labels = text.split('.');
  const last = labels.at(-1) as string;
  const isName = text.length <= 253 && labels.every((label) => LABEL.test(label)) && !NUMBER.test(last);
  return isName ? text : null;
}

/** Loaded this way because an `import` evaluates every export, and one of them loads Node's fetch (13 MB on Node 22). */
export const http = process.getBuiltinModule('node:http');

/** Carries the secret shared by the guard and its engine. */
export const SECRET_HEADER = 'x-comet-cc-guard';
/** Names a client whose connection is handed over to the engine; the connection with this header is its lease. */
export const CLIENT_HEADER = 'x-comet-cc-client';

const HALF_CLOSED_MS = 600_000;
const PROBE_MS = 60_000;
/** TLS session tickets may come after the first request, and are no answer to it. */
const TICKETS_BYTES = 2_048;

function openSocket(host: string, port: number, timeoutMs: number): net.Socket {
  const options = { host, port, allowHalfOpen: true, noDelay: true, autoSelectFamilyAttemptTimeout: 1_000 };
  return withConnectTimeout(net.connect(options), { host, port }, timeoutMs);
}

/** Destroys a socket, with ETIMEDOUT, that does not connect in time or does not answer the kernel's probes later on. */
export function withConnectTimeout<S extends net.Socket>(socket: S, { host, port }: Authority, timeoutMs: number): S {
  const timeout = Object.assign(new Error(`${host}:${port} did not answer in ${timeoutMs} ms`), { code: 'ETIMEDOUT' });
  return socket.setKeepAlive(true, PROBE_MS).setTimeout(timeoutMs, () => socket.destroy(timeout));
}

/** @throws the socket's error, or ETIMEDOUT */
export async function connectTcp(host: string, port: number, timeoutMs: number): Promise<net.Socket> {
  const socket = openSocket(host, port, timeoutMs);
  await once(socket, 'connect');
  return socket.setTimeout(0);
}

/** Sends CONNECT over the socket that `open` creates. @throws the socket's error */
export async function sendConnect(authority: string, headers: Record<string, string>, open: () => net.Socket) {
  const request = http.request({
    method: 'CONNECT',
    maxHeaderSize: MAX_HEAD_BYTES,
    path: authority,
    headers: { host: authority, ...headers },
    createConnection: open,
  });
  request.end();
  const [response, socket, head] = (await once(request, 'connect')) as [IncomingMessage, net.Socket, Buffer];
  socket.setTimeout(0);
  if (head.length > 0) socket.unshift(head);
  return { status: response.statusCode ?? 0, reason: response.statusMessage ?? '', socket };
}

/**
 * A connection to the engine after its answer to CONNECT; `declined` when the engine must not intercept now. With
 * `client`, the connection is the lease of a handed-over client: its end ends the client's connection.
 * @throws when the engine cannot be reached or does not answer in time
 */
export async function connectToEngine(
  port: number,
  options: { authority: string; secret: string; timeoutMs: number; client: string | null },
): Promise<net.Socket | 'declined'> {
  const { authority, secret, timeoutMs, client } = options;
  const headers = { [SECRET_HEADER]: secret, ...(client === null ? {} : { [CLIENT_HEADER]: client }) };
  const { status, socket } = await sendConnect(authority, headers, () => openSocket('127.0.0.1', port, timeoutMs));
  if (status === 200) return socket;
  socket.destroy();
  return 'declined';
}

/** Compares in constant time. */
export function isSecret(given: unknown, secret: string): boolean {
  const [a, b] = [given, secret].map((text) => createHash('sha256').update(String(text)).digest());
  return timingSafeEqual(a as Buffer, b as Buffer);
}

/** Answers a socket that is no longer Node's HTTP server's. */
export function refuse(socket: Duplex, status: string, body = ''): void {
  socket.on('error', () => socket.destroy());
  if (!socket.writable) socket.destroy();
  else {
    const head = `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
    socket.end(head + body, () => socket.destroy());
  }
}

/** Pipes with backpressure. The end of one side half-closes the other; a failure closes both. */
export function pipeBothWays(client: net.Socket, remote: net.Socket): void {
  for (const [from, to] of [
    [client, remote],
    [remote, client],
  ] as const) {
    from.setNoDelay(true);
    from.on('error', () => to.destroy());
    from.once('close', () => to.destroySoon());
    // A half-closed connection that stays silent this long has lost its peer.
    from.once('end', () => to.setTimeout(HALF_CLOSED_MS, () => to.destroy()));
    from.pipe(to);
  }
}

/**
 * Ends a piped connection at rest: its client then opens another one.
 * @param restMs  it rests once nothing has come for so long since bytes of the upstream; a request that waits does not
 */
export function endAtRest(client: net.Socket, remote: net.Socket, restMs: number, mayEnd: () => boolean): void {
  let answered = 0;
  let answeredAt = 0;
  client.on('data', () => {
    answered = 0;
  });
  remote.on('data', (chunk: Buffer) => {
    answered += chunk.length;
    answeredAt = performance.now();
  });
  const look = setInterval(() => {
    if (answered > TICKETS_BYTES && performance.now() - answeredAt >= restMs && mayEnd()) client.destroySoon();
  }, restMs / 10).unref();
  client.once('close', () => clearInterval(look));
}
