import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { beforeAbort } from '../../common/async.ts';
import { pipeBothWays, refuse } from '../guard/tunnel.ts';
import { describeError } from '../guard/upstream-proxy.ts';
import type {
  MessagesRequest,
  ObservedResponse,
  Phase,
  PhaseTimer,
  ProxyLog,
  QuotaObserver,
  RewriteOutcome,
  Rewriter,
} from '../ports.ts';
import {
  CHILD_HEADER,
  endToEndHeaders,
  headerValues,
  inspectRequest,
  type RawHeaders,
  readBody,
  selectResponseHeaders,
  streamBody,
  stripCredentials,
  toPairs,
} from './request.ts';
import { createTee, type Tee } from './response.ts';
import type { Upstream } from './upstream.ts';

export interface ExchangeDeps {
  readonly rewriter: Rewriter;
  readonly quota?: QuotaObserver;
  readonly upstream: Upstream;
  /** Named in errors. */
  readonly origin: string;
  /** Host whose TLS is terminated, on port 443. */
  readonly targetHost: string;
  readonly log: ProxyLog;
  readonly clock: { now(): number };
  /** A rewriter that takes longer than this is skipped. */
  readonly rewriteDeadlineMs: number;
  readonly bodyCapBytes: number;
  readonly teeCapBytes: number;
}

/** Counts since the start. Each exchange counts once in `total` and once in one of the others. */
export interface ProxyStats {
  total: number;
  rewritten: number;
  passed_through: number;
  /** Replayed or sent as received because the rewriter failed or was late. */
  failed_open: number;
}

export interface Incoming {
  readonly isSSL: boolean;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Handles one request, from its headers to the last byte of its response. Never throws. */
export async function runExchange(deps: ExchangeDeps, incoming: Incoming, stats: ProxyStats): Promise<void> {
  const { request, response } = incoming;
  const disconnect = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) disconnect.abort();
  });
  const facts = inspectRequest(request, incoming.isSSL, deps.targetHost);
  if ('status' in facts) return sendError(incoming, facts.status, facts.message);
  stats.total += 1;
  const exchange = { deps, incoming, disconnected: disconnect.signal };
  try {
    if (facts.path === null) {
      stats.passed_through += 1;
      const body = facts.hasBody ? streamBody(request) : null;
      if (body === null) request.resume();
      await relay(exchange, body);
    } else await runMessages(exchange, facts.path, stats);
  } catch (error) {
    deps.log.debug('exchange ended early', { error });
    request.destroy();
  }
}

/** Claude Code dictates and is controlled remotely over WebSockets. They are piped unread. Never throws. */
export async function carryWebSocket(deps: ExchangeDeps, request: IncomingMessage, socket: Socket, head: Buffer) {
  socket.on('error', () => socket.destroy());
  const isTarget = !('status' in inspectRequest(request, 'encrypted' in socket, deps.targetHost));
  if (!isTarget || request.headers.upgrade?.toLowerCase() !== 'websocket') return refuse(socket, '501 Not Implemented');
  try {
    const remote = await deps.upstream.openSocket();
    const headers = toPairs(request.rawHeaders).map((pair) => `${pair.join(': ')}\r\n`);
    remote.write(`${request.method} ${request.url} HTTP/1.1\r\n${headers.join('')}\r\n`, 'latin1');
    remote.write(head);
    pipeBothWays(socket, remote);
    if (socket.destroyed) remote.destroy();
  } catch (error) {
    deps.log.warn('upstream failed', { error, status: 0 });
    refuse(socket, '502 Bad Gateway');
  }
}

interface Exchange {
  readonly deps: ExchangeDeps;
  readonly incoming: Incoming;
  readonly disconnected: AbortSignal;
}

async function runMessages(exchange: Exchange, path: MessagesRequest['path'], stats: ProxyStats): Promise<void> {
  const { deps, incoming, disconnected } = exchange;
  const receivedAtMs = deps.clock.now();
  const received = await readBody(incoming.request, deps.bodyCapBytes);
  if (!Buffer.isBuffer(received)) {
    stats.passed_through += 1;
    deps.log.warn('request too large to inspect; passed through unchanged', { path });
    return reportRateLimits(deps, await relay(exchange, received));
  }
  const timer = createPhaseTimer();
  const headers = stripCredentials(incoming.request.rawHeaders);
  const message: MessagesRequest = { requestId: randomUUID(), timer, path, headers, body: received, receivedAtMs };
  const { outcome, sent } = await rewrite(deps, message, disconnected);
  stats[sent] += 1;
  const body = outcome?.body ?? received;
  let tee: Tee | null = null;
  timer.send();
  const result = await relay(exchange, body, (status, headers) => {
    timer.answer();
    if (outcome === null) return null;
    const contentType = headerValues(headers, 'content-type')[0] ?? '';
    const contentEncoding = headerValues(headers, 'content-encoding').join(',');
    tee = createTee({ status, contentType, contentEncoding, capBytes: deps.teeCapBytes });
    const { write, end } = tee;
    return {
      end,
      write(chunk) {
        timer.answer();
        write(chunk);
      },
    };
  });
  reportRateLimits(deps, result);
  const { requestId } = message;
  const { status, end } = result;
  const sizes = { receivedBytes: received.length, sentBytes: body.length };
  const durationMs = deps.clock.now() - receivedAtMs;
  deps.log.debug('exchange', { requestId, path, sent, ...sizes, status, end, durationMs });
  if (outcome !== null) await reportResponse(deps, outcome, tee, result, message);
}

function createPhaseTimer() {
  const phases: Phase[] = [];
  let [sinceMs, isSent] = [performance.now(), false];
  const add = (name: Phase['name']): void => {
    const nowMs = performance.now();
    phases.push({ name, ms: Math.round((nowMs - sinceMs) * 1_000) / 1_000 });
    sinceMs = nowMs;
  };
  const timer: PhaseTimer = { phases, end: (name) => isSent || add(name) };
  return Object.assign(timer, {
    send(): void {
      isSent = true;
      sinceMs = performance.now();
    },
    /** With the head of the response, and with each part of its body. */
    answer(): void {
      if (phases.at(-1)?.name === 'answer') phases.pop();
      else add('upstream');
      phases.push({ name: 'answer', ms: Math.round(performance.now() - sinceMs) });
    },
  });
}

/** The only place that fails open: memory never costs a request. */
async function rewrite(
  deps: ExchangeDeps,
  message: MessagesRequest,
  disconnected: AbortSignal,
): Promise<{ readonly outcome: RewriteOutcome | null; readonly sent: keyof Omit<ProxyStats, 'total'> }> {
  // Not `AbortSignal.timeout`, which stays alive and fires long after its request ended.
  const limit = new AbortController();
  const signal = AbortSignal.any([limit.signal, disconnected]);
  const onTimeout = (): void => limit.abort(new DOMException('rewriter timed out', 'TimeoutError'));
  let dueMs = performance.now() + deps.rewriteDeadlineMs;
  let timer = setTimeout(onTimeout, deps.rewriteDeadlineMs);
  const extendDeadline = (ms: number): void => {
    clearTimeout(timer);
    dueMs += ms;
    if (!signal.aborted) timer = setTimeout(onTimeout, dueMs - performance.now());
  };
  try {
    const outcome = await beforeAbort(deps.rewriter.rewrite({ ...message, extendDeadline }, signal), signal);
    return { outcome, sent: outcome.rewritten ? 'rewritten' : 'passed_through' };
  } catch (error) {
    if (disconnected.aborted) throw error;
    deps.log.warn('memory skipped; the current plan is replayed', { requestId: message.requestId, error });
  } finally {
    clearTimeout(timer);
  }
  try {
    return { outcome: deps.rewriter.replay(message), sent: 'failed_open' };
  } catch (error) {
    deps.log.error('replay failed; the original is sent', { requestId: message.requestId, error });
    return { outcome: null, sent: 'failed_open' };
  }
}

interface RelayResult {
  /** 0 when no response came. */
  readonly status: number;
  readonly headers: RawHeaders;
  readonly end: ObservedResponse['end'];
  readonly atMs: number;
}

function relay(
  { deps, incoming, disconnected }: Exchange,
  body: Buffer | Readable | null,
  open: (status: number, headers: RawHeaders) => Tee | null = () => null,
): Promise<RelayResult> {
  const { request, response } = incoming;
  return new Promise((resolve) => {
    let status = 0;
    let headers: RawHeaders = [];
    let hasOnlyHead = true;
    let tee: Tee | null = null;
    let atMs = deps.clock.now();
    const dropped = [CHILD_HEADER, 'expect', ...(Buffer.isBuffer(body) ? ['content-length'] : [])];
    const forwarding = deps.upstream.forward(
      {
        method: request.method ?? 'GET',
        path: request.url ?? '/',
        headers: endToEndHeaders(request.rawHeaders, dropped),
        body,
      },
      {
        onHead(code, reason, raw) {
          response.sendDate = false;
          response.writeHead(code, reason, endToEndHeaders(raw));
          // Delayed so that body bytes that came with the head leave in the same TLS record.
          process.nextTick(() => hasOnlyHead && response.flushHeaders());
          status = code;
          headers = raw;
          tee = open(code, raw);
        },
        onData(chunk) {
          hasOnlyHead = false;
          atMs = deps.clock.now();
          const wantsMore = response.write(chunk);
          tee?.write(chunk);
          return wantsMore;
        },
        onEnd(trailers) {
          hasOnlyHead = false;
          if (trailers.length > 0) response.addTrailers(toPairs(trailers));
          response.end();
          resolve({ status, headers, end: 'complete', atMs });
        },
        onError(error) {
          if (disconnected.aborted) return resolve({ status, headers, end: 'aborted_by_client', atMs });
          deps.log.warn('upstream failed', { error, status });
          if (response.headersSent) response.socket?.destroySoon();
          else sendError(incoming, 502, `comet-cc: ${deps.origin} ${describeError(error)}`);
          resolve({ status, headers, end: 'cut_by_upstream', atMs });
        },
      },
    );
    response.on('drain', () => forwarding.resume());
    if (disconnected.aborted) forwarding.abort();
    disconnected.addEventListener('abort', () => forwarding.abort(), { once: true });
  });
}

async function reportResponse(
  deps: ExchangeDeps,
  outcome: RewriteOutcome,
  tee: Tee | null,
  { status, end, atMs }: RelayResult,
  { path, requestId }: MessagesRequest,
): Promise<void> {
  const captured = await tee?.end();
  try {
    outcome.onResponse({
      status,
      end: end === 'complete' && captured?.cut === true ? 'cut_by_upstream' : end,
      atMs,
      message: path === 'messages' ? (captured?.message ?? null) : null,
      errorText: captured?.errorText ?? '',
    });
  } catch (error) {
    deps.log.error('response not recorded', { requestId, error });
  }
}

function reportRateLimits(deps: ExchangeDeps, { status, headers }: RelayResult): void {
  if (status === 0) return;
  try {
    deps.quota?.observeLimits({ status, headers: selectResponseHeaders(headers) });
  } catch (error) {
    deps.log.error('rate limits not recorded', { error });
  }
}

function sendError({ request, response }: Incoming, status: number, message: string): void {
  request.resume();
  if (response.destroyed || response.headersSent) return;
  const type = status >= 500 ? 'api_error' : 'invalid_request_error';
  const body = JSON.stringify({ type: 'error', error: { type, message } });
  response.shouldKeepAlive = false;
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
}
