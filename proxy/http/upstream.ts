import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { Readable } from 'node:stream';
import { createSecureContext, rootCertificates } from 'node:tls';
import { buildConnector, type Dispatcher, Pool } from 'undici';
import { CometError } from '../../common/errors.ts';
import { connectViaProxy } from '../guard/connect-via-proxy.ts';
import type { Route } from '../guard/upstream-proxy.ts';

/** Names and values in turn, as they stood on the wire. */
export type RawHeaders = readonly string[];

interface UpstreamRequest {
  readonly method: string;
  readonly path: string;
  /** Without hop-by-hop headers; `content-length` only where `body` is a stream of known length. */
  readonly headers: RawHeaders;
  readonly body: Buffer | Readable | null;
}

/** Exactly one of `onEnd` and `onError` is called, and nothing after it. */
interface UpstreamHandler {
  onHead(status: number, reason: string, headers: RawHeaders): void;
  /** False asks for a pause until `resume`. */
  onData(chunk: Buffer): boolean;
  onEnd(trailers: RawHeaders): void;
  onError(error: Error): void;
}

interface Forwarding {
  resume(): void;
  /** Closes the connection; `onError` follows unless all was over. */
  abort(): void;
}

export interface Upstream {
  forward(request: UpstreamRequest, handler: UpstreamHandler): Forwarding;
  close(): Promise<void>;
}

export interface UpstreamOptions {
  readonly origin: string;
  /** PEM file trusted beside the public roots. */
  readonly caFile?: string;
  /** The user's own proxy, where there is one; through it, requests look just as they do without. */
  readonly route?: Route;
  /** Wall clock, ms; the system's unless told. */
  readonly now?: () => number;
  /** A connection that takes longer, TLS included, is given up. */
  readonly connectMs?: number;
}

const KEEP_ALIVE_MS = 60_000;
const TICK_MS = 1_000;
/** A clock that moves on by more between two ticks means that the machine slept, or the clock was set. */
const PAUSE_MS = 5_000;
const CONNECT_MS = 15_000;

/**
 * HTTP/1.1 to one origin over kept-alive connections; never retries, never follows a redirect, never times out on a
 * silent stream. The certificate is checked against the origin's host, whatever Host the request names.
 *
 * @throws CometError `ca_unreadable`
 */
export function createUpstream(options: UpstreamOptions): Upstream {
  const { protocol, hostname, port } = new URL(options.origin);
  const { connectMs = CONNECT_MS } = options;
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  // Plain http is for loopback only, where no proxy of the network can reach.
  const hop = protocol === 'http:' ? null : (options.route?.({ host, port: Number(port) || 443 }) ?? null);
  const connect = buildConnector({
    allowH2: false,
    timeout: connectMs,
    noDelay: true,
    autoSelectFamilyAttemptTimeout: 1_000,
    // Once: reading the public roots anew for a connection holds up everything else for 30 ms.
    secureContext: createSecureContext(options.caFile ? { ca: [...rootCertificates, readCa(options.caFile)] } : {}),
  });
  const servername = isIP(host) === 0 ? host : '';
  const open = (): Pool =>
    new Pool(options.origin, {
      connect: (target, callback) => {
        if (hop === null) return connect({ ...target, servername }, callback);
        connectViaProxy(hop, { host, port: Number(port) || 443 }, connectMs).then(
          (httpSocket) => connect({ ...target, servername, httpSocket }, callback),
          (error: Error) => callback(error, null),
        );
      },
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      pipelining: 1,
      allowH2: false,
    });
  const current = renewing(open, options.now ?? Date.now);
  return {
    forward: (request, handler) => forward(current.pool(), request, handler),
    close: () => current.close(),
  };
}

/** A pool that is replaced after a pause: kept-alive connections may be dead by then without a sign of it. */
function renewing(open: () => Pool, now: () => number): { pool(): Pool; close(): Promise<void> } {
  const retired = new Set<Pool>();
  let pool = open();
  let seenAt = now();
  const look = (): Pool => {
    const at = now();
    if (Math.abs(at - seenAt) > PAUSE_MS) {
      const old = pool;
      pool = open();
      retired.add(old);
      // Idle connections end now, busy ones after their response.
      const gone = (): void => void retired.delete(old);
      old.close().then(gone, gone);
    }
    seenAt = at;
    return pool;
  };
  const watch = setInterval(look, TICK_MS).unref();
  return {
    pool: look,
    async close() {
      clearInterval(watch);
      await Promise.all([pool, ...retired].map((one) => one.destroy()));
    },
  };
}

function forward(pool: Pool, request: UpstreamRequest, handler: UpstreamHandler): Forwarding {
  let control: Dispatcher.DispatchController | null = null;
  let aborted = false;
  pool.dispatch(
    {
      method: request.method as Dispatcher.HttpMethod,
      path: request.path,
      headers: [...request.headers],
      body: request.body,
    },
    {
      onRequestStart(controller) {
        control = controller;
        if (aborted) controller.abort(new Error('the client left'));
      },
      onResponseStart(controller, status, _headers, reason) {
        if (status >= 200) handler.onHead(status, reason ?? '', text(controller.rawHeaders));
      },
      onResponseData(controller, chunk) {
        if (!handler.onData(chunk)) controller.pause();
      },
      onResponseEnd: (controller) => handler.onEnd(text(controller.rawTrailers)),
      onResponseError: (_controller, error) => handler.onError(error),
    },
  );
  return {
    resume: () => control?.resume(),
    abort() {
      aborted = true;
      control?.abort(new Error('the client left'));
    },
  };
}

function text(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  return Array.isArray(raw) ? raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1'))) : [];
}

function readCa(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new CometError('ca_unreadable', `${file} cannot be read; set COMET_CC_UPSTREAM_CA to a PEM file`, {
      cause: error,
    });
  }
}
