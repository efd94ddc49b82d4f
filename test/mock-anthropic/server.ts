import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';

export interface Listener {
  readonly port: number;
  /** Ends open connections too; idempotent. */
  close(): Promise<void>;
}

/** Listens on a free loopback port. */
export async function listen(
  tls: { readonly key: string; readonly cert: string } | undefined,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Listener> {
  const server = tls ? https.createServer({ ...tls, ALPNProtocols: ['http/1.1'] }, handle) : http.createServer(handle);
  server.on('connection', (socket) => socket.setNoDelay(true));
  // A silent stream may last as long as a test holds its gate.
  server.requestTimeout = 0;
  server.timeout = 0;
  // As the API, which does not end a connection that a slow machine is about to use again.
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  let closing: Promise<void> | null = null;
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      closing ??= shut(server);
      return closing;
    },
  };
}

async function shut(server: http.Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}

export interface Upload {
  /** Empty when the body is over the limit; what had come when the client left. */
  readonly bytes: Buffer;
  readonly end: 'whole' | 'too_large' | 'aborted';
}

/** Reads to the end also beyond the limit, throwing the rest away, so that the answer arrives. */
export async function readBody(request: IncomingMessage, limitBytes: number): Promise<Upload> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length <= limitBytes) chunks.push(chunk);
      else chunks.length = 0;
    }
  } catch (error) {
    if (!request.errored && !request.destroyed) throw error;
    return { bytes: Buffer.concat(chunks), end: 'aborted' };
  }
  return { bytes: Buffer.concat(chunks), end: length <= limitBytes ? 'whole' : 'too_large' };
}
