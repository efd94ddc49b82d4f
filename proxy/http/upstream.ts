import { readFileSync } from 'node:fs';
import { isIP, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Readable } from 'node:stream';
import { createSecureContext, rootCertificates } from 'node:tls';
import type { Dispatcher, Pool, buildConnector as Tls } from 'undici';
// @ts-expect-error Only the index has types, but it also loads fetch and WebSockets: a tenth of an engine's start.
import buildConnector from 'undici/lib/core/connect.js';
// @ts-expect-error See above.
import ConnectionPool from 'undici/lib/dispatcher/pool.js';
import { CometError, type Problem } from '../../common/errors.ts';
import { connectTcp, MAX_HEAD_BYTES } from '../guard/tunnel.ts';
import { connectViaProxy, describeError, type Route } from '../guard/upstream-proxy.ts';
import type { RawHeaders } from './request.ts';

interface UpstreamRequest {
  readonly method: string;
  readonly path: string;
  /** Without hop-by-hop headers; with `content-length` only for a stream of known length. */
  readonly headers: RawHeaders;
  readonly body: Buffer | Readable | null;
}

/** Exactly one of `onEnd` and `onError` is called, and nothing after it. */
interface UpstreamHandler {
  onHead(status: number, reason: string, headers: RawHeaders): void;
  /** False pauses the response until `resume`. */
  onData(chunk: Buffer): boolean;
  onEnd(trailers: RawHeaders): void;
  onError(error: Error): void;
}

export type Upstream = ReturnType<typeof createUpstream>;

export interface UpstreamOptions {
  readonly origin: string;
  /** PEM file trusted in addition to the public roots. */
  readonly caFile?: string;
  /** PEM of what the machine trusts beside the public roots, asked for once a certificate is not trusted. */
  readonly systemRoots?: () => readonly string[];
  /** The user's own proxy; requests are the same with and without it. */
  readonly route?: Route;
  /** Wall clock in ms; the system clock by default. */
  readonly now?: () => number;
  /** Differs from one network to another; the addresses of this machine by default. */
  readonly network?: () => string;
  /** Timeout for connecting. TLS may take four times as long: a slow network does not get faster by starting over. */
  readonly connectMs?: number;
}

const KEEP_ALIVE_MS = 60_000;
const TICK_MS = 1_000;
/** A larger step between two ticks means that the machine slept or the clock was set. */
const PAUSE_MS = 5_000;
const CONNECT_MS = 15_000;

/**
 * HTTP/1.1 to one origin over kept-alive connections. Never retries, never follows a redirect, never times out a silent
 * stream. The certificate must match the origin's host; the request's Host header does not matter.
 * @throws CometError `ca_unreadable`
 */
export function createUpstream(options: UpstreamOptions) {
  const { protocol, hostname, port } = new URL(options.origin);
  const { connectMs = CONNECT_MS } = options;
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  // Plain http is for loopback only, which no proxy can reach.
  const to = { host, port: Number(port) || 443 };
  const proxy = protocol === 'http:' ? null : (options.route?.(to) ?? null);
  const ca = options.caFile ? readCa(options.caFile) : '';
  const connectorWith = (roots: string): Tls.connector =>
    buildConnector({
      allowH2: false,
      timeout: 4 * connectMs,
      noDelay: true,
      secureContext: createSecureContext(roots === '' ? {} : { ca: [...rootCertificates, roots] }),
    } satisfies Tls.BuildOptions);
  let connect = connectorWith(ca);
  let wide: typeof connect | null = null;
  let problems: readonly Problem[] = [];
  const servername = isIP(host) === 0 ? host : '';
  const open: Tls.connector = (target, callback) => {
    const used = connect;
    const settle: Tls.Callback = (...result) => {
      const [error] = result;
      if (used !== wide && isUntrusted(error)) {
        // Claude Code trusts the machine's store, too.
        connect = wide ??= connectorWith([ca, ...(options.systemRoots?.() ?? [])].join('\n'));
        return open(target, callback);
      }
      problems = error === null ? [] : [{ file: 'upstream', message: `${options.origin} ${describeError(error)}` }];
      callback(...result);
    };
    if (protocol === 'http:') return used({ ...target, servername }, settle);
    const dialed = proxy === null ? connectTcp(host, to.port, connectMs) : connectViaProxy(proxy, to, connectMs);
    dialed.then(
      (httpSocket) => used({ ...target, servername, httpSocket }, settle),
      (error: Error) => settle(error, null),
    );
  };
  const openPool = (): Pool =>
    new ConnectionPool(options.origin, {
      connect: open,
      headersTimeout: 0,
      maxHeaderSize: MAX_HEAD_BYTES,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      pipelining: 1,
      allowH2: false,
    } satisfies Pool.Options);
  const current = createRenewedPool(openPool, options.now ?? Date.now, options.network ?? nameNetwork);
  return {
    forward: (request: UpstreamRequest, handler: UpstreamHandler) => forward(current.pool(), request, handler),
    /** A connection outside the pool. @throws what connecting throws */
    openSocket: (): Promise<Socket> =>
      new Promise((resolve, reject) => {
        open({ hostname: host, host, protocol, port }, (error, socket) => (error ? reject(error) : resolve(socket)));
      }),
    /** Why the last connection failed. */
    problems: () => problems,
    close: (): Promise<void> => current.close(),
  };
}

/** Replaces the pool after a pause and in another network, because kept-alive connections may be dead without notice. */
function createRenewedPool(openPool: () => Pool, now: () => number, network: () => string) {
  const retired = new Set<Pool>();
  let pool = openPool();
  let lastSeen = now();
  let lastNetwork = network();
  const current = (): Pool => {
    const at = now();
    if (Math.abs(at - lastSeen) > PAUSE_MS) {
      const old = pool;
      pool = openPool();
      retired.add(old);
      // Idle connections close now, busy ones after their response.
      const removeOld = (): void => void retired.delete(old);
      old.close().then(removeOld, removeOld);
    }
    lastSeen = at;
    return pool;
  };
  const look = (): void => {
    const name = network();
    if (name !== lastNetwork) lastSeen = Number.NEGATIVE_INFINITY;
    lastNetwork = name;
    current();
  };
  const timer = setInterval(look, TICK_MS).unref();
  return {
    pool: current,
    async close() {
      clearInterval(timer);
      await Promise.all([pool, ...retired].map((each) => each.destroy()));
    },
  };
}

function nameNetwork(): string {
  try {
    const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
    // Those of one link come and go with containers, and nothing connects from them to another network.
    return String(own.map(({ address }) => address).filter((address) => !address.startsWith('fe80:')));
  } catch {
    return ''; // Not every system tells it.
  }
}

function forward(pool: Pool, request: UpstreamRequest, handler: UpstreamHandler) {
  let control: Dispatcher.DispatchController | null = null;
  let aborted = false;
  pool.dispatch(
    { ...request, method: request.method as Dispatcher.HttpMethod, headers: [...request.headers] },
    {
      onRequestStart(controller) {
        control = controller;
        if (aborted) controller.abort(new Error('client disconnected'));
      },
      onResponseStart(controller, status, _headers, reason) {
        // As the bytes that came; node throws at any other character.
        const text = Buffer.from(reason ?? '').toString('latin1');
        const phrase = text.replaceAll(/[^ -~\x80-\xff]/g, '');
        if (status >= 200) handler.onHead(status, phrase, decodeHeaders(controller.rawHeaders));
      },
      onResponseData(controller, chunk) {
        if (!handler.onData(chunk)) controller.pause();
      },
      onResponseEnd: (controller) => handler.onEnd(decodeHeaders(controller.rawTrailers)),
      onResponseError: (_controller, error) => handler.onError(error),
    },
  );
  return {
    resume: () => control?.resume(),
    /** Closes the connection; `onError` follows unless the exchange had ended. */
    abort() {
      aborted = true;
      control?.abort(new Error('client disconnected'));
    },
  };
}

function decodeHeaders(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  return Array.isArray(raw) ? raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1'))) : [];
}

const isUntrusted = (error: unknown): boolean =>
  ['UNABLE_TO', 'SELF_SIGNED'].some((part) => String(Object(error).code).includes(part));

function readCa(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new CometError('ca_unreadable', `${file} cannot be read; set COMET_CC_UPSTREAM_CA to a PEM file`, { cause });
  }
}
