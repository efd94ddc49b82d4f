import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import tls from 'node:tls';
import { CometError } from '../../common/errors.ts';
import type { AssistantMessage } from '../../proxy/index.ts';
import { createAssembler, createSseDecoder } from '../../proxy/index.ts';

const HOST = 'api.anthropic.com';
const TIMEOUT_MS = 20_000;

export interface Way {
  /** The guard's. */
  readonly port: number;
  readonly token: string;
  /** PEM of the bundle that Claude Code is told to trust. */
  readonly ca: string;
}

export interface Answered {
  readonly status: number;
  /** Null unless a stream came to its end. */
  readonly message: AssistantMessage | null;
  /** Body of an answer that is no stream, '' for a stream. */
  readonly text: string;
}

/**
 * One request the way Claude Code makes it: CONNECT with the proxy token, TLS against our bundle, HTTP/1.1, SSE.
 *
 * @throws CometError `upstream_failed` when the way is barred
 */
export async function postThrough(
  way: Way,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
): Promise<Answered> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const secure = await openTunnel(way, signal);
  try {
    const request = http.request({
      method: 'POST',
      path,
      headers: { ...headers, host: HOST, 'content-length': String(body.length) },
      createConnection: () => secure,
      signal,
    });
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return await read(response);
  } finally {
    secure.destroy();
  }
}

async function openTunnel(way: Way, signal: AbortSignal): Promise<tls.TLSSocket> {
  const connect = http.request({
    host: '127.0.0.1',
    port: way.port,
    method: 'CONNECT',
    path: `${HOST}:443`,
    headers: { 'proxy-authorization': `Basic ${Buffer.from(`comet-cc:${way.token}`).toString('base64')}` },
    agent: false,
    signal,
  });
  connect.end();
  const [reply, socket] = (await once(connect, 'connect')) as [IncomingMessage, tls.TLSSocket];
  if (reply.statusCode !== 200) {
    socket.destroy();
    throw new CometError('upstream_failed', `the guard answered CONNECT with ${reply.statusCode}`);
  }
  socket.setNoDelay(true);
  const secure = tls.connect({ socket, servername: HOST, ca: way.ca, ALPNProtocols: ['http/1.1'] });
  await once(secure, 'secureConnect', { signal });
  return secure;
}

async function read(response: IncomingMessage): Promise<Answered> {
  const status = response.statusCode ?? 0;
  if (!String(response.headers['content-type']).startsWith('text/event-stream')) {
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    return { status, message: null, text: Buffer.concat(chunks).toString('utf8') };
  }
  const decoder = createSseDecoder();
  const assembler = createAssembler();
  for await (const chunk of response) for (const event of decoder.push(chunk as Buffer)) assembler.push(event);
  const { message, complete } = assembler.result();
  return { status, message: complete ? message : null, text: '' };
}
