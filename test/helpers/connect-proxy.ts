import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import { setTimeout as after } from 'node:timers/promises';

export interface ConnectProxy {
  readonly url: string;
  readonly port: number;
  /** Target of every CONNECT, refused ones included. */
  readonly asked: string[];
  close(): void;
}

/**
 * A proxy of the user's own network, on loopback.
 *
 * @param options.login   `name:password` that it asks for
 * @param options.refuse  status line with which it answers every CONNECT
 * @param options.leadTo  where each CONNECT leads, whatever it asks for
 * @param options.certs   speaks TLS itself
 * @param options.lateMs  how long it takes to answer a CONNECT
 */
export async function startConnectProxy(
  options: {
    readonly login?: string;
    readonly refuse?: string;
    readonly leadTo?: number;
    readonly certs?: { readonly key: string; readonly cert: string };
    readonly lateMs?: number;
  } = {},
): Promise<ConnectProxy> {
  const asked: string[] = [];
  const sockets = new Set<net.Socket>();
  const expected = options.login && `Basic ${Buffer.from(options.login).toString('base64')}`;
  const refuseAll = (_request: http.IncomingMessage, response: http.ServerResponse): void =>
    void response.writeHead(400).end();
  const server =
    options.certs === undefined ? http.createServer(refuseAll) : https.createServer(options.certs, refuseAll);
  server.on('connection', (socket) => {
    sockets.add(socket.on('error', () => socket.destroy()));
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('connect', async (request, socket: net.Socket, head) => {
    asked.push(request.url ?? '');
    if (options.lateMs !== undefined) await after(options.lateMs);
    const refusal =
      expected === undefined || request.headers['proxy-authorization'] === expected ? options.refuse : null;
    if (refusal !== undefined) {
      const line = refusal ?? '407 Proxy Authentication Required';
      return void socket.end(`HTTP/1.1 ${line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    }
    const [, host = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(request.url ?? '') ?? [];
    const remote = net.connect(options.leadTo ?? Number(port), options.leadTo === undefined ? host : '127.0.0.1');
    remote.on('error', () => socket.destroy());
    remote.once('connect', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      if (head.length > 0) remote.write(head);
      socket.pipe(remote).pipe(socket);
    });
    socket.once('close', () => remote.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `${options.certs === undefined ? 'http' : 'https'}://${options.login ? `${options.login}@` : ''}127.0.0.1:${port}`,
    port,
    asked,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
