import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type net from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { CometError } from '../../common/errors.ts';
import { PLATFORM } from '../../common/paths.ts';
import { type Authority, parseAuthority } from './authority.ts';
import { connectViaProxy } from './connect-via-proxy.ts';
import { openControlSocket } from './control-socket.ts';
import { createEngineProcess } from './engine-process.ts';
import { http } from './http.ts';
import { connectTcp, connectToEngine, pipeBothWays } from './tunnel.ts';
import { formatProxy, type Route } from './upstream-proxy.ts';

export { bypassesProxy, createRoute, parseUpstreamProxy } from './upstream-proxy.ts';

const TIMINGS = {
  /** A new CONNECT waits so long for the engine. */
  holdMs: 2_000,
  drainMs: 30_000,
  headMs: 10_000,
  dialMs: 20_000,
  crashWindowMs: 60_000,
  hungMs: 30_000,
};

export interface GuardOptions {
  readonly port: number;
  /** Origin that a blind tunnel for the target host goes to. */
  readonly upstream: string;
  readonly token: string;
  readonly socketPath: string;
  readonly enginePath: string;
  readonly engineEnv: NodeJS.ProcessEnv;
  readonly version: string;
  readonly onHealthy?: () => void;
  /** What the engine writes to stderr; this process's own unless told. */
  readonly onOutput?: (bytes: Buffer) => void;
  /** The user's own proxy, for every tunnel; straight unless told. */
  readonly route?: Route;
  /** Hears in words why that proxy did not connect, once for each reason. */
  readonly onTrouble?: (message: string) => void;
  readonly target?: Authority;
  readonly timings?: Partial<typeof TIMINGS>;
}

export type Guard = ReturnType<typeof createGuard>;

const LOOPBACK = /^(::ffff:)?127\.|^::1$/;
const CHALLENGE = 'Basic realm="comet-cc"';

/** The front process: owns the port, hands the target host to the engine, tunnels all else. */
export function createGuard(options: GuardOptions) {
  const target = options.target ?? { host: 'api.anthropic.com', port: 443 };
  const authority = `${target.host}:${target.port}`;
  const timings = { ...TIMINGS, ...options.timings };
  const nonce = randomBytes(16).toString('hex');
  const secret = randomBytes(32).toString('hex');
  const expected = digest(`Basic ${Buffer.from(`comet-cc:${options.token}`).toString('base64')}`);
  const startedAt = performance.now();
  const sockets = new Set<net.Socket>();
  const tunnels = { open: 0, total: 0, failed_open: 0 };
  const over = new AbortController();
  const closed = once(over.signal, 'abort');
  let port = 0;
  let stopping = false;
  let control: { close(): void } | null = null;
  let trouble = '';

  const { enginePath: path, engineEnv: env, onHealthy = () => {} } = options;
  const onOutput = options.onOutput ?? ((bytes: Buffer) => void process.stderr.write(bytes));
  const engine = createEngineProcess({ path, secret, env, onHealthy, onOutput, ...timings });
  const server = http.createServer({
    maxHeaderSize: 16_384,
    headersTimeout: timings.headMs,
    requestTimeout: timings.headMs,
    connectionsCheckingInterval: Math.min(1_000, timings.headMs),
  });
  server.on('connection', own);
  server.on('connect', (request, socket, head) => void onConnect(request, socket as net.Socket, head));
  server.on('request', onRequest);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    refuse(socket, error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? '408 Request Timeout' : '400 Bad Request');
  });

  function own(socket: net.Socket): void {
    sockets.add(socket.on('error', () => socket.destroy()));
    socket.once('close', () => sockets.delete(socket));
  }

  const knows = ({ headers }: IncomingMessage): boolean =>
    timingSafeEqual(digest(headers['proxy-authorization'] ?? ''), expected);

  async function onConnect(request: IncomingMessage, client: net.Socket, head: Buffer): Promise<void> {
    if (!knows(request)) return refuse(client, `407 Token Required\r\nProxy-Authenticate: ${CHALLENGE}`);
    const asked = parseAuthority(request.url ?? '');
    if (asked === null) return refuse(client, '400 Bad Request');
    try {
      const isTarget = asked.host === target.host && asked.port === target.port;
      const remote = isTarget ? await openTarget(client, head.length === 0) : await reach(asked);
      if (remote === 'given') return;
      own(remote);
      if (isTarget || !isOwnPort(remote)) return accept(client, remote, head);
      remote.destroy();
      refuse(client, '403 Forbidden');
    } catch (error) {
      const late = Object(error).code === 'ETIMEDOUT';
      refuse(
        client,
        late ? '504 Gateway Timeout' : '502 Bad Gateway',
        error instanceof CometError ? error.message : '',
      );
    }
  }

  function count(remote: net.Socket): void {
    tunnels.open += 1;
    tunnels.total += 1;
    remote.once('close', () => {
      tunnels.open -= 1;
    });
  }

  /** The engine answers a client that is silent until then, and nothing of it passes through this process. */
  function give(client: net.Socket, name: string, lease: net.Socket): void {
    own(lease);
    count(lease);
    lease.on('end', () => lease.destroy()).resume();
    engine.give(name, client, () => lease.destroy());
  }

  function accept(client: net.Socket, remote: net.Socket, head: Buffer): void {
    if (client.destroyed) return void remote.destroy();
    count(remote);
    client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    if (head.length > 0) remote.write(head);
    pipeBothWays(client, remote);
  }

  /** Judged by where a name led: any spelling of this machine would otherwise loop through us. */
  function isOwnPort({ remoteAddress = '', remotePort = 0 }: net.Socket): boolean {
    return LOOPBACK.test(remoteAddress) && (remotePort === port || remotePort === engine.port());
  }

  async function openTarget(client: net.Socket, isSilent: boolean): Promise<net.Socket | 'given'> {
    const name = isSilent && PLATFORM.handsOver ? randomBytes(16).toString('hex') : null;
    const remote = await openEngine(name);
    if (remote === null || name === null) return remote ?? openHost();
    if (client.readableLength === 0) {
      give(client, name, remote);
      return 'given';
    }
    // It spoke before it was answered: what this process has read of it cannot be handed over.
    remote.destroy();
    return (await openEngine(null)) ?? openHost();
  }

  /** Null when no engine takes it in time. */
  async function openEngine(client: string | null): Promise<net.Socket | null> {
    const until = performance.now() + timings.holdMs;
    const left = (): number => Math.ceil(until - performance.now());
    while (!stopping && left() > 0 && (await engine.whenHealthy(left())) && left() > 0) {
      const asked = { authority, secret, client, timeoutMs: left() };
      // One that fails means the engine is on its way down, of which the guard hears a moment later.
      const remote = await connectToEngine(engine.port(), asked).catch(() => null);
      if (remote === 'declined') break;
      if (remote !== null) return remote;
      await sleep(50);
    }
    return null;
  }

  function openHost(): Promise<net.Socket> {
    tunnels.failed_open += 1;
    const { hostname, port: upstreamPort, protocol } = new URL(options.upstream);
    const fallback = protocol === 'http:' ? 80 : 443;
    return reach({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(upstreamPort) || fallback });
  }

  /** Straight, or through the user's own proxy. */
  async function reach(to: Authority): Promise<net.Socket> {
    const hop = options.route?.(to) ?? null;
    if (hop === null) return connectTcp(to.host, to.port, timings.dialMs);
    try {
      const remote = await connectViaProxy(hop, to, timings.dialMs);
      trouble = '';
      return remote;
    } catch (error) {
      const { message } = error as Error;
      if (message !== trouble) options.onTrouble?.(message);
      trouble = message;
      throw error;
    }
  }

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    request.resume();
    response.shouldKeepAlive = false;
    if (!knows(request)) response.writeHead(407, { 'proxy-authenticate': CHALLENGE }).end();
    else if (request.method !== 'GET') response.writeHead(405, { allow: 'GET, CONNECT' }).end();
    else if (request.url === '/.comet-cc/nonce') response.end(nonce);
    else response.writeHead(400).end('This is a CONNECT proxy.\n');
  }

  function status() {
    const uptime_ms = Math.round(performance.now() - startedAt);
    const { version, upstream } = options;
    const counts = { engine: engine.status(), tunnels: { ...tunnels } };
    const hop = options.route?.(target) ?? null;
    const chain = { upstream_proxy: hop === null ? null : formatProxy(hop), upstream_proxy_trouble: trouble };
    return { nonce, pid: process.pid, version, port, upstream, ...chain, target: authority, uptime_ms, ...counts };
  }

  async function handle(request: Readonly<Record<string, unknown>>): Promise<object> {
    const { op, timeout_ms: timeoutMs = 15_000 } = request;
    if (op === 'wait_healthy') await engine.whenHealthy(Math.min(Number(timeoutMs) || 0, 60_000));
    if (op === 'wait_healthy' || op === 'status') return status();
    if (op === 'restart_engine') void engine.restart();
    else if (op === 'stop') setImmediate(() => void stop());
    else return { error: 'op must be status, wait_healthy, stop or restart_engine' };
    return { ok: true };
  }

  /** New work tunnels while the engine finishes what it has; a second call ends it at once. */
  async function stop(): Promise<void> {
    const again = stopping;
    stopping = true;
    await engine.stop(again ? 0 : timings.drainMs);
    // What the engine wrote last is still on its way through us.
    if (!again) await sleep(250);
    control?.close();
    server.close();
    for (const socket of sockets) socket.destroy();
    over.abort();
  }

  /** @throws CometError `port_in_use`, `unsafe_file`; `stop` then gives back what was taken */
  async function listen(): Promise<number> {
    server.listen({ port: options.port, host: '127.0.0.1' });
    await once(server, 'listening').catch((cause: NodeJS.ErrnoException) => {
      const why = `port ${options.port} cannot be used (${cause.code}); stop what holds it or choose another`;
      throw new CometError('port_in_use', why, { cause });
    });
    port = (server.address() as net.AddressInfo).port;
    control = await openControlSocket(options.socketPath, handle, () => void stop());
    engine.start();
    return port;
  }

  /** `closed` resolves when it has stopped, for whatever reason. */
  return { listen, status, stop, closed };
}

function refuse(socket: Duplex, status: string, why = ''): void {
  socket.on('error', () => socket.destroy());
  if (!socket.writable) socket.destroy();
  else {
    const head = `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(why)}\r\n\r\n`;
    socket.end(head + why, () => socket.destroy());
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
