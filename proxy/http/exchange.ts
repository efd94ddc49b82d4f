import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { CometError } from '../../common/errors.ts';
import type { MessagesRequest, ObservedResponse, ProxyLog, QuotaObserver, RewriteOutcome, Rewriter } from '../ports.ts';
import { CHILD_HEADER, endToEndHeaders, headerValues, selectResponseHeaders, stripCredentials } from './headers.ts';
import { inspectRequest, type RequestFacts, readBody, streamBody } from './request-body.ts';
import { createTee, type Tee } from './tee.ts';
import type { RawHeaders, Upstream } from './upstream.ts';

export interface ExchangeDeps {
  readonly rewriter: Rewriter;
  readonly quota?: QuotaObserver;
  readonly upstream: Upstream;
  /** Named in errors. */
  readonly origin: string;
  readonly targetHost: string;
  readonly log: ProxyLog;
  readonly clock: { now(): number };
  readonly rewriteDeadlineMs: number;
  readonly bodyCapBytes: number;
  readonly teeCapBytes: number;
}

/** Exchanges since the start; each is counted once in `total` and once in one of the others. */
export interface ProxyStats {
  total: number;
  rewritten: number;
  passed_through: number;
  /** Replayed or forwarded as received because the rewriter threw or was late. */
  failed_open: number;
}

export interface Incoming {
  readonly isSSL: boolean;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

type Sent = 'rewritten' | 'passed_through' | 'failed_open';

/** One request's life, from its headers to the last byte of its response. Never throws. */
export async function runExchange(deps: ExchangeDeps, incoming: Incoming, stats: ProxyStats): Promise<void> {
  const { request, response } = incoming;
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  const facts = inspectRequest(request, incoming.isSSL, deps.targetHost);
  if ('status' in facts) return answerError(incoming, facts.status, facts.message);
  stats.total += 1;
  try {
    if (facts.path === null) {
      stats.passed_through += 1;
      const body = facts.hasBody ? streamBody(request) : null;
      if (body === null) request.resume();
      await relay({ deps, incoming, gone: gone.signal, body, tee: null });
    } else await runMessages(deps, incoming, { path: facts.path, gone: gone.signal, stats });
  } catch (error) {
    deps.log.debug('exchange ended early', { error });
    request.destroy();
  }
}

interface MessagesContext {
  readonly path: NonNullable<RequestFacts['path']>;
  readonly gone: AbortSignal;
  readonly stats: ProxyStats;
}

async function runMessages(deps: ExchangeDeps, incoming: Incoming, context: MessagesContext): Promise<void> {
  const { gone, stats } = context;
  const receivedAtMs = deps.clock.now();
  const received = await readBody(incoming.request, deps.bodyCapBytes);
  if (!Buffer.isBuffer(received)) {
    stats.passed_through += 1;
    deps.log.warn('request larger than can be looked into; forwarded as it came', { path: context.path });
    return tellQuota(deps, await relay({ deps, incoming, gone, body: received, tee: null }));
  }
  const message: MessagesRequest = {
    requestId: randomUUID(),
    path: context.path,
    headers: stripCredentials(incoming.request.rawHeaders),
    body: received,
    receivedAtMs,
  };
  const { outcome, sent } = await rewrite(deps, message, gone);
  stats[sent] += 1;
  const body = outcome?.body ?? received;
  const tee = outcome === null ? null : teeHolder(deps.teeCapBytes);
  const done = await relay({ deps, incoming, gone, body, tee });
  tellQuota(deps, done);
  deps.log.debug('exchange', {
    requestId: message.requestId,
    path: message.path,
    sent,
    receivedBytes: received.length,
    sentBytes: body.length,
    status: done.status,
    end: done.end,
    durationMs: deps.clock.now() - receivedAtMs,
  });
  if (outcome !== null && tee !== null) await report(deps, { outcome, tee, done, path: message.path });
}

/** The only place that fails open: memory never costs a request. */
async function rewrite(
  deps: ExchangeDeps,
  message: MessagesRequest,
  gone: AbortSignal,
): Promise<{ readonly outcome: RewriteOutcome | null; readonly sent: Sent }> {
  // By hand: a signal of `AbortSignal.timeout` lives, and fires, long after the request that it was for.
  const limit = new AbortController();
  const leave = (): void => limit.abort(gone.reason);
  const late = (): void => limit.abort(new DOMException('the rewriter took too long', 'TimeoutError'));
  const timer = setTimeout(late, deps.rewriteDeadlineMs);
  if (gone.aborted) leave();
  gone.addEventListener('abort', leave, { once: true });
  try {
    const outcome = await Promise.race([deps.rewriter.rewrite(message, limit.signal), aborted(limit.signal)]);
    return { outcome, sent: outcome.rewritten ? 'rewritten' : 'passed_through' };
  } catch (error) {
    if (gone.aborted) throw error;
    deps.log.warn('memory skipped; the request goes as replayed', { requestId: message.requestId, error });
    return { outcome: replay(deps, message), sent: 'failed_open' };
  } finally {
    clearTimeout(timer);
    gone.removeEventListener('abort', leave);
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function replay(deps: ExchangeDeps, message: MessagesRequest): RewriteOutcome | null {
  try {
    return deps.rewriter.replay(message);
  } catch (error) {
    deps.log.error('replay failed; the request goes as received', { requestId: message.requestId, error });
    return null;
  }
}

interface Relay {
  readonly deps: ExchangeDeps;
  readonly incoming: Incoming;
  readonly gone: AbortSignal;
  readonly body: Buffer | Readable | null;
  readonly tee: TeeHolder | null;
}

interface Done {
  /** 0 when no response came. */
  readonly status: number;
  readonly headers: RawHeaders;
  readonly end: ObservedResponse['end'];
}

function relay({ deps, incoming, gone, body, tee }: Relay): Promise<Done> {
  const { request, response } = incoming;
  return new Promise((resolve) => {
    let status = 0;
    let headers: RawHeaders = [];
    let headOnly = true;
    const drop = Buffer.isBuffer(body) ? [CHILD_HEADER, 'expect', 'content-length'] : [CHILD_HEADER, 'expect'];
    const forwarding = deps.upstream.forward(
      {
        method: request.method ?? 'GET',
        path: request.url ?? '/',
        headers: endToEndHeaders(request.rawHeaders, drop),
        body,
      },
      {
        onHead(code, reason, raw) {
          response.sendDate = false;
          response.writeHead(code, reason, endToEndHeaders(raw));
          // What of the body came along with the head goes out in the same record.
          process.nextTick(() => headOnly && response.flushHeaders());
          status = code;
          headers = raw;
          tee?.open(code, raw);
        },
        onData(chunk) {
          headOnly = false;
          const wantsMore = response.write(chunk);
          tee?.tee?.write(chunk);
          return wantsMore;
        },
        onEnd(trailers) {
          headOnly = false;
          if (trailers.length > 0) response.addTrailers(pairs(trailers));
          response.end();
          resolve({ status, headers, end: 'complete' });
        },
        onError(error) {
          if (gone.aborted) return resolve({ status, headers, end: 'aborted_by_client' });
          deps.log.warn('upstream failed', { error, status });
          if (response.headersSent) response.socket?.destroySoon();
          else answerError(incoming, 502, `comet-cc: ${deps.origin} ${whyFailed(error)}`);
          resolve({ status, headers, end: 'cut_by_upstream' });
        },
      },
    );
    response.on('drain', () => forwarding.resume());
    if (gone.aborted) forwarding.abort();
    gone.addEventListener('abort', () => forwarding.abort(), { once: true });
  });
}

interface TeeHolder {
  tee: Tee | null;
  open(status: number, headers: RawHeaders): void;
}

function teeHolder(capBytes: number): TeeHolder {
  return {
    tee: null,
    open(status, headers) {
      this.tee = createTee({
        status,
        contentType: headerValues(headers, 'content-type')[0] ?? '',
        contentEncoding: headerValues(headers, 'content-encoding').join(','),
        capBytes,
      });
    },
  };
}

interface Report {
  readonly outcome: RewriteOutcome;
  readonly tee: TeeHolder;
  readonly done: Done;
  readonly path: MessagesRequest['path'];
}

async function report(deps: ExchangeDeps, { outcome, tee, done, path }: Report): Promise<void> {
  const captured = await tee.tee?.end();
  const cut = done.end === 'complete' && captured?.cut === true;
  try {
    outcome.onResponse({
      status: done.status,
      end: cut ? 'cut_by_upstream' : done.end,
      message: path === 'messages' ? (captured?.message ?? null) : null,
      errorText: captured?.errorText ?? '',
      headers: selectResponseHeaders(done.headers),
    });
  } catch (error) {
    deps.log.error('a response could not be taken into memory', { error });
  }
}

function tellQuota(deps: ExchangeDeps, { status, headers }: Done): void {
  if (status === 0) return;
  try {
    deps.quota?.answered({ status, headers: selectResponseHeaders(headers) });
  } catch (error) {
    deps.log.error('the rate limits of a response were not taken in', { error });
  }
}

function answerError({ request, response }: Incoming, status: number, message: string): void {
  request.resume();
  if (response.destroyed || response.headersSent) return;
  const type = status >= 500 ? 'api_error' : 'invalid_request_error';
  const body = JSON.stringify({ type: 'error', error: { type, message } });
  response.shouldKeepAlive = false;
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

const HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused the connection; is it the right upstream?',
  ENOTFOUND: 'has no address; is the network up?',
  EAI_AGAIN: 'could not be looked up; is the network up?',
  UND_ERR_CONNECT_TIMEOUT: 'did not accept a connection in time; is the network up?',
  ERR_SSL_WRONG_VERSION_NUMBER: 'does not speak TLS; is it the right upstream?',
};

function whyFailed(error: Error): string {
  if (error instanceof CometError) return `cannot be reached: ${error.message}`;
  const code = String((error as NodeJS.ErrnoException).code ?? error.name);
  const isTls = /CERT|SELF_SIGNED|ERR_TLS|ERR_SSL|EPROTO|UNABLE_TO/.test(code);
  const hint = isTls
    ? 'shows a certificate that is not trusted; a private upstream needs COMET_CC_UPSTREAM_CA'
    : 'closed the connection';
  return `${HINTS[code] ?? hint} (${code})`;
}

function pairs(raw: RawHeaders): [string, string][] {
  const found: [string, string][] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) found.push([raw[at] as string, raw[at + 1] as string]);
  return found;
}
