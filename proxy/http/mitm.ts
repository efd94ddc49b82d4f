import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { ServerOptions, Server as TlsServer } from 'node:https';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type IContext, Proxy as MitmProxy } from 'http-mitm-proxy';
import { CLIENT_HEADER, isSecret, MAX_HEAD_BYTES, refuse, SECRET_HEADER } from '../guard/tunnel.ts';
import type { CertSource, ProxyLog } from '../ports.ts';
import type { Incoming } from './exchange.ts';

export interface MitmOptions {
  /** `host:port`, the only accepted CONNECT target. */
  readonly authority: string;
  /** The value that a CONNECT must carry in the guard's header. */
  readonly secret: string;
  readonly certs: CertSource;
  readonly log: ProxyLog;
  readonly handshakeMs: number;
  readonly headersMs: number;
  readonly onRequest: (incoming: Incoming) => void;
  readonly onUpgrade: (request: IncomingMessage, socket: Socket, head: Buffer) => void;
}

/** How often the server looks for slow headers. */
const CHECK_MS = 5_000;
/** Clients show no certificate, and parsing the public roots blocks the event loop for 30 ms. */
const NO_ROOTS = { ca: [] };
const ESTABLISHED = 'HTTP/1.1 200 Connection Established\r\n\r\n';

/**
 * http-mitm-proxy with one TLS server, one leaf and one CONNECT target. The connection of a CONNECT is handed to the TLS
 * server, so the library's path by host name (prototype lookups, files named after hosts, a second connection over
 * 0.0.0.0, console output) is never reached. See `docs/decisions/0035-http-mitm-proxy.md`.
 */
export class Mitm {
  readonly #options: MitmOptions;
  readonly #proxy: QuietProxy;
  readonly #sockets = new Set<Duplex>();
  /** Connections that wait for the client that the guard hands over, by the client's name. */
  readonly #leases = new Map<string, Duplex>();
  #tls: TlsServer | null = null;
  #servedLeaf: NonNullable<ReturnType<CertSource['leaf']>> | null = null;
  #isDraining = false;

  constructor(options: MitmOptions) {
    this.#options = options;
    this.#proxy = new QuietProxy(options.log);
    this.#proxy.onConnect((request, socket, head) => this.#onConnect(request, socket, head));
    this.#proxy.onRequest((ctx) => {
      if (this.#isDraining) ctx.proxyToClientResponse.shouldKeepAlive = false;
      options.onRequest({ isSSL: ctx.isSSL, request: ctx.clientToProxyRequest, response: ctx.proxyToClientResponse });
    });
  }

  #onConnect(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#track(socket);
    const isGuard = isSecret(request.headers[SECRET_HEADER], this.#options.secret);
    if (!isGuard || request.url !== this.#options.authority) return void refuse(socket, '403 Forbidden');
    const tls = this.#tls;
    if (tls === null || this.#isDraining || !this.#loadLeaf(tls)) return void refuse(socket, '503 Service Unavailable');
    const client = request.headers[CLIENT_HEADER];
    if (typeof client === 'string') return void this.#lease(client, socket);
    socket.write(ESTABLISHED);
    if (head.length > 0) socket.unshift(head);
    tls.emit('connection', socket);
  }

  #lease(client: string, lease: Duplex): void {
    this.#leases.set(client, lease);
    lease.once('close', () => this.#leases.delete(client));
    lease.on('end', () => lease.destroy()).resume();
    lease.write(ESTABLISHED);
  }

  /** Accepts a client's own, unanswered connection from the guard; null when the client has disconnected. */
  acceptClient(name: string, client: Socket | null): void {
    const lease = this.#leases.get(name);
    if (lease === undefined || client === null || this.#tls === null || this.#isDraining) {
      lease?.destroy();
      client?.destroy();
      return;
    }
    this.#track(client);
    client.once('close', () => lease.destroy());
    lease.once('close', () => client.destroy());
    client.allowHalfOpen = true;
    client.write(ESTABLISHED);
    this.#tls.emit('connection', client);
  }

  #track(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#sockets.delete(socket));
  }

  /** Uses the newest leaf for the connections to come; false when none may be served. */
  #loadLeaf(server: TlsServer): boolean {
    try {
      const leaf = this.#options.certs.leaf();
      if (leaf === null) return false;
      if (leaf.cert !== this.#servedLeaf?.cert)
        server.setSecureContext({ key: leaf.key, cert: leaf.cert, ...NO_ROOTS });
      this.#servedLeaf = leaf;
      return true;
    } catch (error) {
      this.#options.log.error('leaf certificate cannot be served; the guard tunnels instead', { error });
      return false;
    }
  }

  /** Binds 127.0.0.1 on a free port; TLS is ready when it resolves. */
  async listen(): Promise<number> {
    const http = await this.#proxy.open();
    secureDefaults(http, this.#options);
    const { headersMs, handshakeMs } = this.#options;
    const tls = await this.#proxy.createTlsServer({
      ...NO_ROOTS,
      noDelay: true,
      maxHeaderSize: MAX_HEAD_BYTES,
      connectionsCheckingInterval: Math.min(CHECK_MS, headersMs),
      handshakeTimeout: handshakeMs,
    });
    secureDefaults(tls, this.#options);
    this.#loadLeaf(tls);
    this.#tls = tls;
    return (http.address() as AddressInfo).port;
  }

  /** Closes idle connections now and busy ones after their response. */
  drain(): void {
    this.#isDraining = true;
    this.#tls?.closeIdleConnections();
  }

  async close(): Promise<void> {
    const http = this.#proxy.httpServer;
    if (http === undefined) return;
    const closed = once(http, 'close');
    this.#proxy.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#tls?.closeAllConnections();
    http.closeAllConnections();
    await closed;
  }
}

class QuietProxy extends MitmProxy {
  readonly #log: ProxyLog;

  constructor(log: ProxyLog) {
    super();
    this.#log = log;
  }

  /** The library's `listen` without the CA that it would create at every start. */
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

  async createTlsServer(options: ServerOptions): Promise<TlsServer> {
    const server = await new Promise<TlsServer>((resolve) => {
      this._createHttpsServer(options, (_port, tls) => resolve(tls));
    });
    // Closes only the port, which is not needed. https's own `close` would also stop the check for slow headers.
    await new Promise((resolve) => NetServer.prototype.close.call(server, resolve));
    return server;
  }

  // The library's handlers print to the console.
  override _onError(kind: string, _ctx: IContext | null, error: Error): void {
    this.#log.debug('connection failed', { kind, error });
  }

  override _onSocketError(kind: string, error: NodeJS.ErrnoException): void {
    this.#log.debug('connection failed', { kind, error });
  }
}

/** Replaces the library's listeners, which accept WebSockets, keep broken clients open and print to the console. */
function secureDefaults(server: Server | TlsServer, { log, headersMs, onUpgrade }: MitmOptions): void {
  server.removeAllListeners('upgrade');
  server.removeAllListeners('clientError');
  server.requestTimeout = 0;
  server.headersTimeout = headersMs;
  server.keepAliveTimeout = 0;
  server.on('connection', (socket: Socket) => socket.setNoDelay(true));
  server.on('upgrade', onUpgrade);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    log.debug('client connection failed', { code: error.code });
    if (error.code?.startsWith('HPE_')) refuse(socket, '400 Bad Request');
    else socket.destroy();
  });
}
