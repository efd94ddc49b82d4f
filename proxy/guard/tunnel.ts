import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import net from 'node:net';
import type { Authority } from './authority.ts';
import { http } from './http.ts';

/** Carries the secret that only the guard and its engine know. */
export const SECRET_HEADER = 'x-comet-cc-guard';
/** Names the client that is handed over to the engine; the connection that carries it then is its lease. */
export const CLIENT_HEADER = 'x-comet-cc-client';

const HALF_CLOSED_MS = 600_000;

function connect(host: string, port: number, timeoutMs: number): net.Socket {
  const options = { host, port, allowHalfOpen: true, noDelay: true, autoSelectFamilyAttemptTimeout: 1_000 };
  return withConnectTimeout(net.connect(options), { host, port }, timeoutMs);
}

/** Gives up on a connection that is not there in time, with ETIMEDOUT. */
export function withConnectTimeout<S extends net.Socket>(socket: S, { host, port }: Authority, timeoutMs: number): S {
  const late = Object.assign(new Error(`${host}:${port} did not answer in ${timeoutMs} ms`), { code: 'ETIMEDOUT' });
  return socket.setTimeout(timeoutMs, () => socket.destroy(late));
}

/** @throws what the socket threw, or ETIMEDOUT */
export async function connectTcp(host: string, port: number, timeoutMs: number): Promise<net.Socket> {
  const socket = connect(host, port, timeoutMs);
  await once(socket, 'connect');
  return socket.setTimeout(0);
}

export interface ConnectAnswer {
  readonly status: number;
  readonly reason: string;
  /** What the other side sent along with its answer can be read from it. */
  readonly socket: net.Socket;
}

/**
 * Sends CONNECT over what `open` opens.
 *
 * @throws what the socket threw
 */
export async function sendConnect(
  authority: string,
  headers: Readonly<Record<string, string>>,
  open: () => net.Socket,
): Promise<ConnectAnswer> {
  const request = http.request({
    method: 'CONNECT',
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
 * A connection to the engine on which it has answered CONNECT; `declined` when it must not intercept now. With `client`
 * it is the lease of a client that is handed over: either side's end of it ends the client's connection.
 *
 * @throws when it could not be reached or did not answer in time
 */
export async function connectToEngine(
  port: number,
  options: {
    readonly authority: string;
    readonly secret: string;
    readonly timeoutMs: number;
    readonly client: string | null;
  },
): Promise<net.Socket | 'declined'> {
  const open = (): net.Socket => connect('127.0.0.1', port, options.timeoutMs);
  const { secret, client } = options;
  const headers = { [SECRET_HEADER]: secret, ...(client === null ? {} : { [CLIENT_HEADER]: client }) };
  const { status, socket } = await sendConnect(options.authority, headers, open);
  if (status === 200) return socket;
  socket.destroy();
  return 'declined';
}

/** Pipes both ways with backpressure; one side's end half-closes the other, its failure closes both. */
export function pipeBothWays(client: net.Socket, remote: net.Socket): void {
  for (const [from, to] of [
    [client, remote],
    [remote, client],
  ] as const) {
    from.setNoDelay(true);
    from.on('error', () => to.destroy());
    from.once('close', () => to.destroySoon());
    // Half-closed and silent for so long means the other end is gone without a word.
    from.once('end', () => to.setTimeout(HALF_CLOSED_MS, () => to.destroy()));
    from.pipe(to);
  }
}
