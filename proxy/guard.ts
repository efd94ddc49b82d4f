import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import http from 'node:http';
import type net from 'node:net';
import type { Duplex } from 'node:stream';
import { CometError } from '../common/errors.ts';
import { type Authority, parseAuthority } from './authority.ts';
import { openControl } from './guard/control.ts';
import { createEngine, type EngineState } from './guard/engine.ts';
import { dial, dialEngine, join } from './guard/tunnel.ts';

export interface GuardOptions {
  /** 0 picks one. */
  readonly port: number;
  /** Origin that a blind tunnel for the target host goes to. */
  readonly upstream: string;
  readonly token: string;
  readonly socketPath: string;
  readonly enginePath: string;
  readonly engineEnv: NodeJS.ProcessEnv;
  readonly version: string;
  readonly onHealthy?: () => void;
  readonly target?: Authority;
  /** How long a new CONNECT waits for the engine. */
  readonly holdMs?: number;
  readonly drainMs?: number;
  readonly headMs?: number;
  readonly dialMs?: number;
  readonly crashWindowMs?: number;
  readonly hungMs?: number;
}

export interface GuardStatus {
  readonly nonce: string;
  readonly pid: number;
  readonly version: string;
  readonly port: number;
  readonly upstream: string;
  readonly target: string;
  readonly uptime_ms: number;
  readonly engine: { readonly state: EngineState; readonly pid: number | null; readonly restarts: number };
  /** `failed_open`: tunnelled to the upstream although the engine should have had it. */
  readonly tunnels: { readonly open: number; readonly total: number; readonly failed_open: number };
}

export interface Guard {
  /** @throws CometError `port_in_use`, `unsafe_file` */
  listen(): Promise<number>;
  status(): GuardStatus;
  /** New work tunnels while the engine finishes what it has; a second call ends it at once. */
  stop(): Promise<void>;
  /** Resolves when it has stopped, for whatever reason. */
  readonly closed: Promise<void>;
}

const TARGET: Authority = { host: 'api.anthropic.com', port: 443 };
const LOOPBACK = /^(::ffff:)?127\.|^::1$/;
const RETRY_MS = 50;
const LAST_BYTES_MS = 250;

/** The front process: owns the port, hands the target host to the engine, tunnels all else. */
export function createGuard(options: GuardOptions): Guard {
  const target = options.target ?? TARGET;
  const upstream = new URL(options.upstream);
  const upstreamPort = Number(upstream.port) || (upstream.protocol === 'http:' ? 80 : 443);
  const upstreamHost = upstream.hostname.replace(/^\[(.*)\]$/, '$1');
  const { holdMs = 2_000, drainMs = 30_000, headMs = 10_000, dialMs = 20_000 } = options;
  const nonce = randomBytes(16).toString('hex');
  const secret = randomBytes(32).toString('hex');
  const expected = digest(`Basic ${Buffer.from(`comet-cc:${options.token}`).toString('base64')}`);
  const startedAt = performance.now();
  const sockets = new Set<net.Socket>();
  const tunnels = { open: 0, total: 0, failed_open: 0 };
  let port = 0;
  let control: { close(): void } | null = null;
  let stopping = false;
  let finish: () => void = () => {};
  const closed = new Promise<void>((resolve) => {
    finish = resolve;
  });

  const engine = createEngine({
    path: options.enginePath,
    secret,
    env: options.engineEnv,
    onHealthy: options.onHealthy ?? (() => {}),
    crashWindowMs: options.crashWindowMs ?? 60_000,
    hungMs: options.hungMs ?? 30_000,
  });

  const server = http.createServer({
    maxHeaderSize: 16_384,
    headersTimeout: headMs,
    requestTimeout: headMs,
    connectionsCheckingInterval: Math.min(1_000, headMs),
    keepAliveTimeout: 1_000,
    noDelay: true,
  });
  server.on('connection', (socket: net.Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('connect', (request, socket, head) => {
    socket.on('error', () => socket.destroy());
    void onConnect(request, socket as net.Socket, head);
  });
  server.on('request', onRequest);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    refuse(socket, error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? '408 Request Timeout' : '400 Bad Request');
  });

  function knows(request: http.IncomingMessage): boolean {
    return timingSafeEqual(digest(request.headers['proxy-authorization'] ?? ''), expected);
  }

  async function onConnect(request: http.IncomingMessage, client: net.Socket, head: Buffer): Promise<void> {
    if (!knows(request)) {
      return refuse(client, '407 Proxy Authentication Required', 'Proxy-Authenticate: Basic realm="comet-cc"\r\n');
    }
    const authority = parseAuthority(request.url ?? '');
    if (authority === null) return refuse(client, '400 Bad Request');
    try {
      const isTarget = authority.host === target.host && authority.port === target.port;
      const remote = isTarget ? await openTarget() : await openOther(authority);
      if (remote === 'self') return refuse(client, '403 Forbidden');
      accept(client, remote, head);
    } catch (error) {
      const late = (error as NodeJS.ErrnoException).code === 'ETIMEDOUT';
      refuse(client, late ? '504 Gateway Timeout' : '502 Bad Gateway');
    }
  }

  function accept(client: net.Socket, remote: net.Socket, head: Buffer): void {
    if (client.destroyed) return void remote.destroy();
    tunnels.open += 1;
    tunnels.total += 1;
    sockets.add(remote);
    remote.once('close', () => {
      tunnels.open -= 1;
      sockets.delete(remote);
    });
    client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    if (head.length > 0) remote.write(head);
    join(client, remote);
  }

  async function openOther(authority: Authority): Promise<net.Socket | 'self'> {
    const remote = await dial(authority.host, authority.port, dialMs);
    // Judged by where the name led: any spelling of this machine would otherwise loop through us.
    const own = remote.remotePort === port || (engine.port() > 0 && remote.remotePort === engine.port());
    if (!own || !LOOPBACK.test(remote.remoteAddress ?? '')) return remote;
    remote.destroy();
    return 'self';
  }

  async function openTarget(): Promise<net.Socket> {
    const until = performance.now() + holdMs;
    const left = (): number => until - performance.now();
    while (!stopping && left() > 0 && (await engine.whenHealthy(left()))) {
      const door = { port: engine.port(), secret, authority: `${target.host}:${target.port}`, timeoutMs: left() };
      // A connection that fails means the engine is on its way down, of which the guard hears a moment later.
      const remote = await dialEngine(door).catch(() => null);
      if (remote === 'declined') break;
      if (remote !== null) return remote;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
    tunnels.failed_open += 1;
    return await dial(upstreamHost, upstreamPort, dialMs);
  }

  function onRequest(request: http.IncomingMessage, response: http.ServerResponse): void {
    request.resume();
    response.shouldKeepAlive = false;
    if (!knows(request)) {
      response.writeHead(407, { 'Proxy-Authenticate': 'Basic realm="comet-cc"' }).end();
    } else if (request.url !== '/.comet-cc/nonce') {
      response.writeHead(400).end('This is a CONNECT proxy.\n');
    } else if (request.method !== 'GET') {
      response.writeHead(405, { Allow: 'GET' }).end();
    } else response.writeHead(200, { 'Content-Type': 'text/plain' }).end(nonce);
  }

  function status(): GuardStatus {
    return {
      nonce,
      pid: process.pid,
      version: options.version,
      port,
      upstream: options.upstream,
      target: `${target.host}:${target.port}`,
      uptime_ms: Math.round(performance.now() - startedAt),
      engine: engine.status(),
      tunnels: { ...tunnels },
    };
  }

  async function handle(request: Readonly<Record<string, unknown>>): Promise<object> {
    switch (request['op']) {
      case 'status':
        return status();
      case 'wait_healthy': {
        const timeoutMs = Number(request['timeout_ms']);
        await engine.whenHealthy(Number.isFinite(timeoutMs) ? Math.min(Math.max(timeoutMs, 0), 60_000) : 15_000);
        return status();
      }
      case 'restart_engine':
        engine.restart();
        return { ok: true };
      case 'stop':
        // After the reply is on its way: a second stop ends the process at once.
        setImmediate(() => void stop());
        return { ok: true };
      default:
        return { error: 'op must be status, wait_healthy, stop or restart_engine' };
    }
  }

  async function stop(): Promise<void> {
    if (stopping) await engine.stop(0);
    else {
      stopping = true;
      await engine.stop(drainMs);
      // What the engine wrote last is still on its way through us.
      await new Promise((resolve) => setTimeout(resolve, LAST_BYTES_MS));
    }
    control?.close();
    control = null;
    server.close();
    for (const socket of sockets) socket.destroy();
    finish();
  }

  return {
    status,
    stop,
    closed,
    async listen() {
      port = await listen(server, options.port);
      try {
        control = await openControl({ path: options.socketPath, handle, onLost: () => void stop() });
      } catch (error) {
        server.close();
        throw error;
      }
      engine.start();
      return port;
    },
  };
}

function listen(server: net.Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const message = `port ${port} of 127.0.0.1 cannot be used (${error.code}); stop what holds it or choose another`;
      reject(new CometError('port_in_use', message, { cause: error }));
    });
    server.listen({ port, host: '127.0.0.1' }, () => resolve((server.address() as net.AddressInfo).port));
  });
}

function refuse(socket: Duplex, status: string, header = ''): void {
  if (socket.destroyed || !socket.writable) return void socket.destroy();
  socket.on('error', () => socket.destroy());
  socket.end(`HTTP/1.1 ${status}\r\n${header}Connection: close\r\nContent-Length: 0\r\n\r\n`, () => socket.destroy());
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
