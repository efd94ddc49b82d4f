import { timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  type ErrorCallback,
  type ICertDetails,
  type ICertficateContext,
  type IContext,
  Proxy as MitmProxy,
  type OnCertificateRequiredCallback,
} from 'http-mitm-proxy';
import { CLIENT_HEADER, SECRET_HEADER } from '../guard/tunnel.ts';
import type { CertSource, ProxyLog } from '../ports.ts';
import type { Incoming } from './exchange.ts';

export interface MitmOptions {
  /** `host:port`; no other CONNECT is answered with 200. */
  readonly authority: string;
  /** What a CONNECT must carry in the guard's header. */
  readonly secret: string;
  readonly certs: CertSource;
  readonly log: ProxyLog;
  /** A TLS handshake that takes longer is closed. */
  readonly handshakeMs: number;
  /** A request whose headers take longer is closed with its connection. */
  readonly headersMs: number;
  readonly onRequest: (incoming: Incoming) => void;
}

export interface Mitm {
  /** Binds 127.0.0.1 on a free port; TLS is ready when it resolves. */
  listen(): Promise<number>;
  /** A client's own connection, not yet answered, under the name that the guard asked with; null when it has ended. */
  acceptClient(name: string, client: Socket | null): void;
  /** Idle connections close, busy ones after their response. */
  drain(): void;
  close(): Promise<void>;
}

/** How often slow headers are looked for. */
const LOOK_MS = 5_000;
const ESTABLISHED = 'HTTP/1.1 200 Connection Established\r\n\r\n';

type Leaf = NonNullable<ReturnType<CertSource['leaf']>>;

/**
 * http-mitm-proxy with one TLS server, one leaf and one CONNECT target. The CONNECT's own connection is handed to the
 * TLS server, so nothing of the stock path by host name (prototype look-ups, files named after hosts, a hop over
 * 0.0.0.0, console output) is ever reached.
 */
export function createMitm(options: MitmOptions): Mitm {
  const proxy = new FixedLeafProxy(options);
  const sockets = new Set<Duplex>();
  const leases = new Map<string, Duplex>();
  let tls: TlsServer | null = null;
  let served: Leaf | null = null;
  let draining = false;

  proxy.onRequest((ctx) => {
    if (draining) ctx.proxyToClientResponse.shouldKeepAlive = false;
    options.onRequest({
      isSSL: ctx.isSSL,
      request: ctx.clientToProxyRequest,
      response: ctx.proxyToClientResponse,
    });
  });

  proxy.onConnect((request, socket, head) => {
    track(socket, sockets);
    const isGuard = isSecret(request.headers[SECRET_HEADER], options.secret);
    if (!isGuard || request.url !== options.authority) return refuse(socket, '403 Forbidden');
    if (tls === null || draining || !takeLeaf(tls)) return refuse(socket, '503 Service Unavailable');
    const client = request.headers[CLIENT_HEADER];
    if (typeof client === 'string') lend(client, socket);
    socket.write(ESTABLISHED);
    if (typeof client === 'string') return;
    if (head.length > 0) socket.unshift(head);
    tls.emit('connection', socket);
  });

  /** Waits for the client that the guard hands over next; the lease ends with it, and it with the lease. */
  function lend(name: string, lease: Duplex): void {
    leases.set(name, lease);
    lease.once('close', () => leases.delete(name));
    lease.on('end', () => lease.destroy()).resume();
  }

  function take(name: string, client: Socket | null): void {
    const lease = leases.get(name);
    if (lease === undefined || client === null || tls === null || draining) {
      lease?.destroy();
      client?.destroy();
      return;
    }
    track(client, sockets);
    client.once('close', () => lease.destroy());
    lease.once('close', () => client.destroy());
    client.allowHalfOpen = true;
    client.write(ESTABLISHED);
    tls.emit('connection', client);
  }

  /** Whether there is a leaf to serve; a new one replaces the old for the connections to come. */
  function takeLeaf(server: TlsServer): boolean {
    try {
      const leaf = options.certs.leaf();
      if (leaf === null) return false;
      if (leaf.cert !== served?.cert) server.setSecureContext({ key: leaf.key, cert: leaf.cert });
      served = leaf;
      return true;
    } catch (error) {
      options.log.error('the leaf cannot be served; the guard tunnels instead', { error });
      return false;
    }
  }

  async function startTls(): Promise<void> {
    tls = await new Promise<TlsServer>((resolve) => {
      // The library binds a port for it; none is wanted, since connections are handed over.
      proxy._createHttpsServer(
        {
          noDelay: true,
          connectionsCheckingInterval: Math.min(LOOK_MS, options.headersMs),
          handshakeTimeout: options.handshakeMs,
        },
        (_port, server) => resolve(server),
      );
    });
    // Not http's own close, which would also end its watch over slow headers.
    await new Promise((resolve) => NetServer.prototype.close.call(tls, resolve));
    tame(tls, options);
    takeLeaf(tls);
  }

  return {
    async listen() {
      const http = await proxy.open();
      tame(http, options);
      await startTls();
      return (http.address() as AddressInfo).port;
    },
    acceptClient: take,
    drain() {
      draining = true;
      tls?.closeIdleConnections();
    },
    async close() {
      const http = proxy.httpServer;
      if (http === undefined) return;
      const gone = new Promise((resolve) => http.once('close', resolve));
      proxy.close();
      for (const socket of sockets) socket.destroy();
      tls?.closeAllConnections();
      http.closeAllConnections();
      await gone;
    },
  };
}

class FixedLeafProxy extends MitmProxy {
  readonly #options: MitmOptions;

  constructor(options: MitmOptions) {
    super();
    this.#options = options;
  }

  /** The library's `listen` without the CA, and the folder for it, that it would make at every start and never use. */
  async open(): Promise<Server> {
    this.options = {};
    this.timeout = 0;
    this.httpHost = '127.0.0.1';
    const server = createServer();
    server.on('connect', (request, socket, head) => this._onHttpServerConnect(request, socket, head));
    server.on('request', (request, response) => this._onHttpServerRequest(false, request, response));
    this.httpServer = server.listen(0, this.httpHost);
    await once(server, 'listening');
    return server;
  }

  // Both certificate hooks give the one leaf, whatever the host: no other is ever made.
  override onCertificateRequired(_host: string, callback: OnCertificateRequiredCallback): this {
    const leaf = this.#options.certs.leaf();
    if (leaf === null) callback(new Error('no leaf may be served'), { keyFile: '', certFile: '' });
    else callback(null, { keyFile: leaf.keyFile, certFile: leaf.certFile, hosts: [] });
    return this;
  }

  override onCertificateMissing(_ctx: ICertficateContext, _files: ICertDetails, callback: ErrorCallback): this {
    callback(new Error('the leaf is missing'));
    return this;
  }

  // The library's own print to the console.
  override _onError(kind: string, _ctx: IContext | null, error: Error): void {
    this.#options.log.debug('connection failed', { kind, error });
  }

  override _onSocketError(kind: string, error: NodeJS.ErrnoException): void {
    this.#options.log.debug('connection failed', { kind, error });
  }
}

/** Takes what the library hung on a server: WebSockets accepted unasked, broken clients kept open, console output. */
function tame(server: Server | TlsServer, { log, headersMs }: Pick<MitmOptions, 'log' | 'headersMs'>): void {
  server.removeAllListeners('upgrade');
  server.removeAllListeners('clientError');
  server.requestTimeout = 0;
  server.headersTimeout = headersMs;
  server.keepAliveTimeout = 0;
  server.on('connection', (socket: Socket) => socket.setNoDelay(true));
  server.on('upgrade', (_request, socket: Duplex) => refuse(socket, '501 Not Implemented'));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    log.debug('client connection failed', { code: error.code });
    if (error.code?.startsWith('HPE_')) refuse(socket, '400 Bad Request');
    else socket.destroy();
  });
}

function isSecret(given: unknown, secret: string): boolean {
  const [a, b] = [Buffer.from(typeof given === 'string' ? given : ''), Buffer.from(secret)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function track(socket: Duplex, sockets: Set<Duplex>): void {
  sockets.add(socket);
  socket.on('error', () => socket.destroy());
  socket.once('close', () => sockets.delete(socket));
}

function refuse(socket: Duplex, status: string): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () => socket.destroy());
}
