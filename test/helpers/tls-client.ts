import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import tls from 'node:tls';
import type { TestCerts } from './certs.ts';

/** More than the product takes. */
const MAX_HEAD_BYTES = 131_072;

interface Received {
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

export interface StandIn {
  readonly origin: string;
  readonly port: number;
  /** Every request whose body arrived whole. */
  readonly received: Received[];
  readonly sockets: Set<net.Socket>;
  readonly server: https.Server;
  close(): Promise<void>;
}

export type Answer = (request: http.IncomingMessage, response: http.ServerResponse, body: Buffer) => void;

/** A TLS upstream on loopback. `answer` runs after the whole body; `early` at once, without one. */
export async function startStandIn(certs: TestCerts, answer: Answer, early?: Answer): Promise<StandIn> {
  const received: Received[] = [];
  const sockets = new Set<net.Socket>();
  const server = https.createServer({ key: certs.key, cert: certs.cert, maxHeaderSize: MAX_HEAD_BYTES });
  server.on('request', (request, response) => {
    request.on('error', () => {});
    early?.(request, response, Buffer.alloc(0));
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      received.push({
        method: request.method ?? '',
        url: request.url ?? '',
        rawHeaders: request.rawHeaders,
        body,
      });
      answer(request, response, body);
    });
  });
  server.on('connection', (socket: net.Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `https://127.0.0.1:${port}`,
    port,
    received,
    sockets,
    server,
    async close() {
      server.close();
      server.closeAllConnections();
      for (const socket of sockets) socket.destroy();
    },
  };
}

export interface Via {
  readonly port: number;
  /** Header lines of the CONNECT, each ending in CRLF. */
  readonly connectHeaders: string;
  readonly authority?: string;
}

/** Sends CONNECT and resolves with the socket and the status. */
export async function connectThrough(via: Via): Promise<{ socket: net.Socket; status: number }> {
  const socket = net.connect(via.port, '127.0.0.1');
  socket.on('error', () => {});
  const authority = via.authority ?? 'api.anthropic.com:443';
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${via.connectHeaders}\r\n`);
  let head = '';
  while (!head.includes('\r\n\r\n')) {
    const [chunk] = (await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => [null])])) as [
      Buffer | null,
    ];
    if (chunk === null) return { socket, status: 0 };
    head += chunk.toString('latin1');
  }
  socket.pause();
  return { socket, status: Number(/^HTTP\/1\.\d (\d+)/.exec(head)?.[1] ?? 0) };
}

/** TLS inside a CONNECT, verified against `ca`. */
export async function secureThrough(via: Via, ca: string): Promise<tls.TLSSocket> {
  const { socket, status } = await connectThrough(via);
  if (status !== 200) throw new Error(`CONNECT answered ${status}`);
  const secure = tls.connect({ socket, servername: 'api.anthropic.com', ca, ALPNProtocols: ['http/1.1'] });
  await once(secure, 'secureConnect');
  return secure;
}

/** Resolves when the socket has closed, whether or not an error came before, which `once` fails with. */
export function closed(socket: net.Socket): Promise<unknown> {
  return new Promise((resolve) => {
    socket.on('error', () => {}).once('close', resolve);
  });
}

export interface Reply {
  readonly status: number;
  readonly reason: string;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  readonly trailers: readonly string[];
}

export interface Send {
  readonly method?: string;
  readonly path?: string;
  /** Names and values in turn. */
  readonly headers?: readonly string[];
  readonly body?: Buffer | string;
}

export const CLIENT = ['user-agent', 'claude-cli/2.1.197 (external, cli)', 'content-type', 'application/json'];

/** Opens one request; the caller writes and reads it. */
export function openRequest(secure: tls.TLSSocket, send: Send): http.ClientRequest {
  const headers = ['Host', 'api.anthropic.com', ...(send.headers ?? [])];
  return http.request({
    method: send.method ?? 'POST',
    path: send.path ?? '/v1/messages?beta=true',
    headers: headers as unknown as http.OutgoingHttpHeaders,
    agent: getAgent(secure),
    maxHeaderSize: MAX_HEAD_BYTES,
  });
}

const agents = new WeakMap<tls.TLSSocket, http.Agent>();

/** Keeps to the one connection, request after request. */
function getAgent(secure: tls.TLSSocket): http.Agent {
  let agent = agents.get(secure);
  if (agent === undefined) {
    agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    Object.assign(agent, { createConnection: () => secure });
    agents.set(secure, agent);
  }
  return agent;
}

/** One whole request and its response over an own connection. */
export async function ask(via: Via, ca: string, send: Send): Promise<Reply> {
  const secure = await secureThrough(via, ca);
  try {
    return await askOn(secure, send);
  } finally {
    secure.destroy();
  }
}

export async function askOn(secure: tls.TLSSocket, send: Send): Promise<Reply> {
  const body = send.body === undefined ? null : Buffer.from(send.body);
  const chunked = send.headers?.some((name) => name.toLowerCase() === 'transfer-encoding');
  const length = body === null || chunked ? [] : ['Content-Length', String(body.length)];
  const request = openRequest(secure, { ...send, headers: [...(send.headers ?? []), ...length] });
  request.end(body ?? undefined);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return {
    status: response.statusCode ?? 0,
    reason: response.statusMessage ?? '',
    rawHeaders: response.rawHeaders,
    body: Buffer.concat(chunks),
    trailers: response.rawTrailers,
  };
}
