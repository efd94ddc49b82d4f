import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import net from 'node:net';
import tls from 'node:tls';
import { nowMs } from './stats.ts';

/** A way to the stand-in: straight, or by CONNECT through a proxy. */
export interface Way {
  readonly port: number;
  readonly ca: string;
  readonly servername: string;
  /** Header lines of the CONNECT, each ending in CRLF; null goes straight. */
  readonly connect: string | null;
}

export interface Sent {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface Timed {
  /** From the first thing done for this request to the first byte of its answer. */
  readonly firstByteMs: number;
  /** Bytes of the body that reached the stand-in. */
  readonly receivedBytes: number;
}

const HOST = 'api.anthropic.com';

export async function open(way: Way): Promise<tls.TLSSocket> {
  const socket = net.connect({ port: way.port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  // The TLS connection on it tells of it.
  socket.on('error', () => {});
  const closed = new AbortController();
  socket.once('close', () => closed.abort(new Error('the proxy closed the connection')));
  if (way.connect !== null) {
    socket.write(`CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}:443\r\n${way.connect}\r\n`);
    let head = '';
    while (!head.includes('\r\n\r\n')) head += String((await once(socket, 'data', closed))[0]);
    if (!head.startsWith('HTTP/1.1 200')) throw new Error(`CONNECT: ${head}`);
  }
  const secure = tls.connect({ socket, servername: way.servername, ca: way.ca, ALPNProtocols: ['http/1.1'] });
  await once(secure, 'secureConnect');
  return secure;
}

/** One request on a connection that stays open. */
export async function timed(secure: tls.TLSSocket, sent: Sent, fromMs = nowMs()): Promise<Timed> {
  let firstMs = 0;
  secure.once('data', () => {
    firstMs = nowMs();
  });
  const response = await post(secure, sent);
  for await (const _ of response);
  if (response.statusCode !== 200) throw new Error(`answered with ${response.statusCode}`);
  return { firstByteMs: firstMs - fromMs, receivedBytes: Number(response.headers['x-bench-received']) };
}

/** One request with all that a new connection costs. */
export async function timedAnew(way: Way, sent: Sent): Promise<Timed> {
  const fromMs = nowMs();
  const secure = await open(way);
  try {
    return await timed(secure, sent, fromMs);
  } finally {
    secure.destroy();
  }
}

export async function post(secure: tls.TLSSocket, { headers, body }: Sent): Promise<IncomingMessage> {
  const request = http.request({
    method: 'POST',
    path: '/v1/messages?beta=true',
    headers: { ...headers, host: HOST, 'content-length': String(body.length) },
    agent: getAgent(secure),
  });
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return response;
}

const agents = new WeakMap<tls.TLSSocket, http.Agent>();

function getAgent(secure: tls.TLSSocket): http.Agent {
  let agent = agents.get(secure);
  if (agent === undefined) {
    agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    Object.assign(agent, { createConnection: () => secure });
    agents.set(secure, agent);
  }
  return agent;
}
