import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CometError } from '../../common/errors.ts';
import { PLATFORM } from '../../common/paths.ts';
import { type Handle, openControlSocket } from './control.ts';
import { EngineProcess } from './engine-process.ts';
import {
  type Authority,
  connectTcp,
  connectToEngine,
  endAtRest,
  http,
  isSecret,
  MAX_HEAD_BYTES,
  parseAuthority,
  pipeBothWays,
  refuse,
} from './tunnel.ts';
import { connectViaProxy, formatProxy, type Route } from './upstream-proxy.ts';

export { watchSocket } from './control.ts';
export { isSecret } from './tunnel.ts';
export { bypassesProxy, createRoute, formatProxy, parseUpstreamProxy } from './upstream-proxy.ts';

const TIMINGS = {
  /** A new CONNECT waits this long for an engine that is silent. */
  holdMs: 2_000,
  /** For one that starts: the API may refuse a request that bypasses memory, and Claude Code waits for minutes. */
  startMs: 15_000,
  /** A tunnel past the engine that is silent this long after an answer rests. */
  restMs: 120_000,
  drainMs: 30_000,
  headMs: 10_000,
  dialMs: 20_000,
  crashWindowMs: 600_000,
  hungMs: 30_000,
  /** Without memory, the port is closed this long after its last connection. */
  unusedMs: 3_600_000,
};

export interface GuardOptions {
  readonly port: number;
  /** Origin of a blind tunnel for the target host. */
  readonly upstream: string;
  readonly token: string;
  readonly socketPath: string;
  readonly enginePath: string;
  readonly engineEnv: NodeJS.ProcessEnv;
  readonly version: string;
  /** Digest of its program, which names what it is built of. */
  readonly build: string;
  /** Receives the engine's stderr; defaults to this process's stderr. */
  readonly onOutput?: (bytes: Buffer) => void;
  /** The user's own proxy, for every tunnel; direct by default. */
  readonly route?: Route;
  /** Receives the reason why that proxy does not connect, once per reason. */
  readonly onTrouble?: (message: string) => void;
  readonly target?: Authority;
  readonly timings?: Partial<typeof TIMINGS>;
  /** What a new environment changes when memory is started again. Throws where it needs a new process. */
  readonly configure?: (env: NodeJS.ProcessEnv) => Partial<GuardOptions>;
}

const LOOPBACK = /^(::ffff:)?127\.|^::1$/;
const CHALLENGE = 'Basic realm="comet-cc"';
/** Time for the last output of the engine to arrive before the guard exits. */
const OUTPUT_MS = 250;
const RETRY_MS = 50;

/** The front process: owns the port, hands connections for the target host to the engine, tunnels everything else. */
export class Guard {
  /** Resolves when the guard has stopped. */
  readonly closed: Promise<unknown>;
  #options: GuardOptions;
  readonly #timings: typeof TIMINGS;
  readonly #target: Authority;
  readonly #authority: string;
  readonly #nonce = randomBytes(16).toString('hex');
  readonly #secret = randomBytes(32).toString('hex');
  readonly #expectedAuth: string;
  /** Of memory: it may be started again. */
  #startedAt = performance.now();
  readonly #sockets = new Set<net.Socket>();
  /** Control connections of running `comet-cc run` commands. */
  readonly #sessions = new Set<net.Socket>();
  /** Connections past the engine. */
  readonly #bypasses = new WeakSet<net.Socket>();
  readonly #tunnels = { open: 0, total: 0, failed_open: 0, bypassing: 0 };
  readonly #stopped = new AbortController();
  readonly #engine: EngineProcess;
  readonly #server: Server;
  #port = 0;
  /** Memory is stopped or stopping: everything is tunneled. */
  #isStopping = false;
  /** The folder of the control socket is gone. */
  #isHomeless = false;
  #ending: Promise<void> = Promise.resolve();
  #unused: NodeJS.Timeout | undefined;
  #lastUse = Number.NEGATIVE_INFINITY;
  #control: { close(): void } | null = null;
  #proxyTrouble = '';

  constructor(options: GuardOptions) {
    this.#options = options;
    this.#timings = { ...TIMINGS, ...options.timings };
    this.#target = options.target ?? { host: 'api.anthropic.com', port: 443 };
    this.#authority = `${this.#target.host}:${this.#target.port}`;
    this.#expectedAuth = `Basic ${Buffer.from(`comet-cc:${options.token}`).toString('base64')}`;
    this.closed = once(this.#stopped.signal, 'abort');
    this.#engine = new EngineProcess({
      path: options.enginePath,
      secret: this.#secret,
      env: () => ({ ...this.#options.engineEnv, COMET_CC_PORT: String(this.#port) }),
      onOutput: options.onOutput ?? ((bytes) => void process.stderr.write(bytes)),
      crashWindowMs: this.#timings.crashWindowMs,
      hungMs: this.#timings.hungMs,
    });
    const { headMs } = this.#timings;
    this.#server = http.createServer({
      maxHeaderSize: MAX_HEAD_BYTES,
      headersTimeout: headMs,
      requestTimeout: headMs,
      connectionsCheckingInterval: Math.min(1_000, headMs),
    });
    this.#server.on('connection', (socket) => this.#track(socket));
    this.#server.on('connect', (request, socket, head) => void this.#onConnect(request, socket as net.Socket, head));
    this.#server.on('request', (request, response) => this.#onRequest(request, response));
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      refuse(socket, error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? '408 Request Timeout' : '400 Bad Request');
    });
  }

  #track(socket: net.Socket): void {
    this.#sockets.add(socket.on('error', () => socket.destroy()));
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #isAuthorized({ headers }: IncomingMessage): boolean {
    return isSecret(headers['proxy-authorization'], this.#expectedAuth);
  }

  async #onConnect(request: IncomingMessage, client: net.Socket, head: Buffer): Promise<void> {
    if (!this.#isAuthorized(request)) return refuse(client, `407 Token Required\r\nProxy-Authenticate: ${CHALLENGE}`);
    const authority = parseAuthority(request.url ?? '');
    if (authority === null) return refuse(client, '400 Bad Request');
    try {
      const isTarget = authority.host === this.#target.host && authority.port === this.#target.port;
      const remote = isTarget ? await this.#openTarget(client, head.length === 0) : await this.#openTunnel(authority);
      if (remote === 'handed_over') return;
      this.#track(remote);
      if (isTarget || !this.#isOwnPort(remote)) return this.#accept(client, remote, head);
      remote.destroy();
      refuse(client, '403 Forbidden');
    } catch (error) {
      const status = Object(error).code === 'ETIMEDOUT' ? '504 Gateway Timeout' : '502 Bad Gateway';
      refuse(client, status, error instanceof CometError ? error.message : '');
    }
  }

  #countTunnel(remote: net.Socket): void {
    this.#tunnels.open += 1;
    this.#tunnels.total += 1;
    remote.once('close', () => {
      this.#tunnels.open -= 1;
      this.#lastUse = performance.now();
    });
  }

  /** Only for a client that has sent nothing: the engine answers its CONNECT, and no byte passes through the guard. */
  #handOver(client: net.Socket, name: string, lease: net.Socket): void {
    this.#track(lease);
    this.#countTunnel(lease);
    lease.on('end', () => lease.destroy()).resume();
    // Node keeps a connection open, and reports nothing, whose engine exits before it has taken it over.
    const { _handle: handle } = client as unknown as { readonly _handle: { close(): void } | null };
    lease.once('close', () => {
      client.destroy();
      handle?.close();
    });
    this.#engine.handOver(name, client, () => lease.destroy());
  }

  #accept(client: net.Socket, remote: net.Socket, head: Buffer): void {
    if (client.destroyed) return void remote.destroy();
    this.#countTunnel(remote);
    client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    if (head.length > 0) remote.write(head);
    pipeBothWays(client, remote);
    if (!this.#bypasses.has(remote)) return;
    this.#tunnels.bypassing += 1;
    remote.once('close', () => {
      this.#tunnels.bypassing -= 1;
    });
    endAtRest(client, remote, this.#timings.restMs, () => !this.#isStopping && this.#engine.port() !== 0);
  }

  /** Checks the resolved address, because any name that resolves to this machine could loop. */
  #isOwnPort({ remoteAddress = '', remotePort = 0 }: net.Socket): boolean {
    return LOOPBACK.test(remoteAddress) && (remotePort === this.#port || remotePort === this.#engine.port());
  }

  async #openTarget(client: net.Socket, isSilent: boolean): Promise<net.Socket | 'handed_over'> {
    const name = isSilent && PLATFORM.handsOver ? randomBytes(16).toString('hex') : null;
    const remote = await this.#openEngine(name);
    if (remote === null || name === null) return remote ?? this.#openBypass();
    if (client.readableLength === 0) {
      this.#handOver(client, name, remote);
      return 'handed_over';
    }
    // The client sent data before the answer; bytes already read here cannot be handed over.
    remote.destroy();
    return (await this.#openEngine(null)) ?? this.#openBypass();
  }

  /** Null when no engine accepts the connection in time. */
  async #openEngine(client: string | null): Promise<net.Socket | null> {
    const { holdMs, startMs } = this.#timings;
    const fromMs = performance.now();
    let patienceMs = holdMs;
    const left = (): number => {
      patienceMs = Math.max(patienceMs, this.#engine.patienceMs(holdMs, startMs));
      return Math.ceil(fromMs + patienceMs - performance.now());
    };
    while (!this.#isStopping && left() > 0 && (await this.#engine.whenHealthy(left())) && left() > 0) {
      const options = { authority: this.#authority, secret: this.#secret, client, timeoutMs: left() };
      // A failure means that the engine is exiting; the guard learns of it a moment later.
      const remote = await connectToEngine(this.#engine.port(), options).catch(() => null);
      if (remote === 'declined') break;
      if (remote !== null) return remote;
      await sleep(RETRY_MS);
    }
    return null;
  }

  /** A tunnel past the engine; once that is healthy, it ends as soon as it rests, so that the session has memory again. */
  async #openBypass(): Promise<net.Socket> {
    this.#tunnels.failed_open += 1;
    const { hostname, port, protocol } = new URL(this.#options.upstream);
    const to = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (protocol === 'http:' ? 80 : 443) };
    const remote = await this.#openTunnel(to);
    this.#bypasses.add(remote);
    return remote;
  }

  /** Direct or through the user's own proxy. */
  async #openTunnel(to: Authority): Promise<net.Socket> {
    const proxy = this.#options.route?.(to) ?? null;
    if (proxy === null) return connectTcp(to.host, to.port, this.#timings.dialMs);
    try {
      const remote = await connectViaProxy(proxy, to, this.#timings.dialMs);
      this.#proxyTrouble = '';
      return remote;
    } catch (error) {
      const { message, code } = error as CometError;
      // A company's proxy may let through the API and few other hosts.
      if (code === 'upstream_failed' && to.host !== new URL(this.#options.upstream).hostname) throw error;
      if (message !== this.#proxyTrouble) this.#options.onTrouble?.(message);
      this.#proxyTrouble = message;
      throw error;
    }
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    request.resume();
    response.shouldKeepAlive = false;
    if (!this.#isAuthorized(request)) response.writeHead(407, { 'proxy-authenticate': CHALLENGE }).end();
    else if (request.method !== 'GET') response.writeHead(405, { allow: 'GET, CONNECT' }).end();
    else if (request.url === '/.comet-cc/nonce') response.end(this.#nonce);
    else response.writeHead(400).end('This is a CONNECT proxy.\n');
  }

  status() {
    const proxy = this.#options.route?.(this.#target) ?? null;
    return {
      nonce: this.#nonce,
      pid: process.pid,
      version: this.#options.version,
      build: this.#options.build,
      program: this.#options.enginePath,
      port: this.#port,
      upstream: this.#options.upstream,
      /** The user's own proxy, without credentials, and its last refusal of a connection, as text. */
      upstream_proxy: proxy === null ? null : formatProxy(proxy),
      upstream_proxy_trouble: this.#proxyTrouble,
      target: this.#authority,
      uptime_ms: Math.round(performance.now() - this.#startedAt),
      engine: this.#engine.status(),
      tunnels: { ...this.#tunnels },
      /** Set once memory is stopped while the port stays open. */
      pass_through: this.#unused ? { sessions: this.#sessions.size, connections: this.#tunnels.open } : null,
    };
  }

  async #handleControl(request: Readonly<Record<string, unknown>>, socket: net.Socket): Promise<object | null> {
    const { op, timeout_ms: timeoutMs = 15_000, now, restarts } = request;
    if (op === 'wait_healthy') await this.#engine.whenHealthy(Math.min(Number(timeoutMs) || 0, 60_000));
    if (op === 'wait_healthy' || op === 'status') return this.status();
    if (op === 'session') return this.#addSession(socket);
    if (op === 'start') return await this.#startAgain(Object(request['env']) as NodeJS.ProcessEnv);
    if (op !== 'stop') return { error: 'op must be status, wait_healthy, session, start or stop' };
    setImmediate(() => void (now === true ? this.stop(restarts === true) : this.#stopMemory()));
    return { ok: true };
  }

  /** The connection stays open for as long as the session runs. */
  #addSession(socket: net.Socket): null {
    this.#sessions.add(socket);
    socket.once('close', () => {
      this.#sessions.delete(socket);
      this.#lastUse = performance.now();
    });
    return null;
  }

  /** Ends the engine. Sessions continue through plain tunnels, and the guard stops some time after the last one. */
  async #stopMemory(): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    const { drainMs, unusedMs } = this.#timings;
    this.#ending = this.#engine.stop(drainMs);
    await this.#ending;
    const stopUnused = (): void => {
      const isUsed = this.#tunnels.open + this.#sessions.size > 0;
      const mostMs = this.#isHomeless ? 0 : unusedMs;
      if (this.#isHomeless && this.#hasHome()) void this.stop();
      else if (!isUsed && performance.now() - this.#lastUse >= mostMs) void this.stop();
    };
    this.#unused = setInterval(stopUnused, Math.min(1_000, unusedMs));
    stopUnused();
  }

  #hasHome(): boolean {
    return existsSync(path.dirname(this.#options.socketPath));
  }

  /** Where the home was moved or removed, sessions continue without memory until the next start at its place. */
  #onSocketLost(): void {
    this.#isHomeless = !this.#hasHome();
    void (this.#isHomeless ? this.#stopMemory() : this.stop());
  }

  async #startAgain(env: NodeJS.ProcessEnv): Promise<object> {
    await this.#ending;
    if (!this.#isStopping || this.#unused === undefined) return { error: 'the guard does not wait for a start' };
    this.#options = { ...this.#options, ...this.#options.configure?.(env) };
    clearInterval(this.#unused);
    this.#unused = undefined;
    this.#isStopping = false;
    this.#startedAt = performance.now();
    this.#engine.start();
    return { ok: true };
  }

  /** New connections are tunneled while the engine drains. A second call ends the engine at once. */
  async stop(restarts = false): Promise<void> {
    const isRepeated = this.#isStopping && this.#unused === undefined;
    this.#isStopping = true;
    clearInterval(this.#unused);
    this.#unused = undefined;
    await this.#engine.stop(isRepeated ? 0 : this.#timings.drainMs, restarts);
    if (!isRepeated) await sleep(OUTPUT_MS);
    // A session that finds the socket of a home that is back, and no guard behind it, starts one.
    if (!this.#isHomeless) this.#control?.close();
    this.#server.close();
    for (const socket of [...this.#sockets, ...this.#sessions]) socket.destroy();
    this.#stopped.abort();
  }

  /** @throws CometError `port_in_use`, `unsafe_file`; `stop` then releases what was acquired */
  async listen(): Promise<number> {
    const { port, socketPath } = this.#options;
    this.#server.listen({ port, host: '127.0.0.1' });
    await once(this.#server, 'listening').catch((cause: NodeJS.ErrnoException) => {
      const message = `port ${port} cannot be used (${cause.code}); stop the program that uses it or choose another port`;
      throw new CometError('port_in_use', message, { cause });
    });
    this.#port = (this.#server.address() as net.AddressInfo).port;
    const handle: Handle = (request, socket) => this.#handleControl(request, socket);
    this.#control = await openControlSocket(socketPath, handle, () => this.#onSocketLost());
    this.#engine.start();
    return this.#port;
  }
}
