import type { IncomingMessage } from 'node:http';
import { PassThrough, type Readable } from 'node:stream';

/** Alternating names and values, as received. */
export type RawHeaders = readonly string[];

/** Marks requests of comet-cc's own `claude -p` children; never sent upstream. */
export const CHILD_HEADER = 'x-comet-cc-child';

const HOP_BY_HOP =
  'connection keep-alive proxy-connection proxy-authenticate proxy-authorization te transfer-encoding upgrade'.split(
    ' ',
  );
const CREDENTIALS: ReadonlySet<string> = new Set(['authorization', 'x-api-key', 'cookie', 'proxy-authorization']);
const RESPONSE_HEADERS = /^(anthropic-ratelimit-.*|retry-after|request-id)$/;

export function headerValues(raw: RawHeaders, name: string): string[] {
  return raw.filter((_, at) => at % 2 === 1 && raw[at - 1]?.toLowerCase() === name);
}

/** The end-to-end headers, with order, case and duplicates kept. Source: RFC 9110 §7.6.1. */
export function endToEndHeaders(raw: RawHeaders, drop: readonly string[] = []): string[] {
  const connectionOptions = headerValues(raw, 'connection').flatMap((value) => value.toLowerCase().split(','));
  const dropped = new Set([...HOP_BY_HOP, ...drop, ...connectionOptions.map((name) => name.trim())]);
  return toPairs(raw).flatMap((pair) => (dropped.has(pair[0].toLowerCase()) ? [] : pair));
}

export function toPairs(raw: RawHeaders): [string, string][] {
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) pairs.push([raw[at] as string, raw[at + 1] as string]);
  return pairs;
}

/** Lower-case names, duplicates joined, without credentials. */
export function stripCredentials(raw: RawHeaders): Record<string, string> {
  return collect(raw, (name) => !CREDENTIALS.has(name));
}

/** Rate limits, `retry-after` and `request-id`. */
export function selectResponseHeaders(raw: RawHeaders): Record<string, string> {
  return collect(raw, (name) => RESPONSE_HEADERS.test(name));
}

function collect(raw: RawHeaders, wanted: (name: string) => boolean): Record<string, string> {
  const fields = new Map<string, string>();
  for (const [cased, value] of toPairs(raw)) {
    const name = cased.toLowerCase();
    if (!wanted(name)) continue;
    const earlier = fields.get(name);
    fields.set(name, earlier === undefined ? value : `${earlier}, ${value}`);
  }
  return Object.fromEntries(fields);
}

export interface RequestFacts {
  readonly hasBody: boolean;
  /** Null for requests that pass through unread. */
  readonly path: 'messages' | 'count_tokens' | null;
}

/**
 * Only Claude Code's requests for the target host, over the proxy's own TLS, are inspected. A status is returned for a
 * request that cannot be forwarded unambiguously to the target.
 */
export function inspectRequest(
  request: IncomingMessage,
  isSSL: boolean,
  host: string,
): RequestFacts | { readonly status: 400 | 421; readonly message: string } {
  const raw = request.rawHeaders;
  const hosts = headerValues(raw, 'host').map((value) => value.toLowerCase());
  if (hosts.length > 1) return { status: 400, message: 'more than one Host' };
  if (!isSSL || (hosts[0] !== host && hosts[0] !== `${host}:443`))
    return { status: 421, message: 'not the host served' };
  const coding = headerValues(raw, 'transfer-encoding');
  const lengths = headerValues(raw, 'content-length');
  const chunked = coding.length > 0;
  if (chunked && (lengths.length > 0 || coding.join(',').toLowerCase() !== 'chunked'))
    return { status: 400, message: 'ambiguous message length' };
  return { hasBody: chunked || Number(lengths[0] ?? 0) > 0, path: findPath(request) };
}

function findPath({ rawHeaders: raw, method, url }: IncomingMessage): RequestFacts['path'] {
  const encoding = headerValues(raw, 'content-encoding').join(',').trim().toLowerCase();
  const isClient = headerValues(raw, 'user-agent')[0]?.startsWith('claude-cli/') ?? false;
  const isChild = headerValues(raw, CHILD_HEADER).length > 0;
  if (method !== 'POST' || !isClient || isChild || (encoding !== '' && encoding !== 'identity')) return null;
  const path = url?.split('?', 1)[0];
  if (path === '/v1/messages') return 'messages';
  return path === '/v1/messages/count_tokens' ? 'count_tokens' : null;
}

/** The whole body, or a stream when it is larger than `capBytes`. @throws when the client disconnects before the end */
export function readBody(request: IncomingMessage, capBytes: number): Promise<Buffer | Readable> {
  const length = Number(request.headers['content-length'] ?? 0);
  if (length > capBytes) return Promise.resolve(streamBody(request));
  return new Promise((resolve, reject) => {
    const body = createBodyBuffer(length);
    const onData = (chunk: Buffer): void => {
      body.add(chunk);
      if (body.bytes() <= capBytes) return;
      request.pause();
      settle(() => resolve(streamBody(request, [body.toBuffer()])));
    };
    const onEnd = (): void => settle(() => resolve(body.toBuffer()));
    const onClose = (): void => settle(() => reject(new Error('upload cut off')));
    const settle = (end: () => void): void => {
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
      end();
    };
    request.on('data', onData).once('end', onEnd).once('close', onClose).once('error', onClose);
    request.resume();
  });
}

/** Allocates the announced length at once, so that chunks die young; a chunked body announces none. */
function createBodyBuffer(announced: number) {
  const whole = Buffer.allocUnsafeSlow(announced);
  const chunks: Buffer[] = [];
  let bytes = 0;
  return {
    add(chunk: Buffer): void {
      if (announced > 0) chunk.copy(whole, bytes);
      else chunks.push(chunk);
      bytes += chunk.length;
    },
    bytes: () => bytes,
    toBuffer: (): Buffer => (announced > 0 ? whole.subarray(0, bytes) : Buffer.concat(chunks)),
  };
}

/** A stream of its own: undici destroys it when the response comes early, but the connection must stay. */
export function streamBody(request: IncomingMessage, received: readonly Buffer[] = []): Readable {
  const body = new PassThrough();
  for (const chunk of received) body.write(chunk);
  request.once('close', () => {
    if (!request.complete) body.destroy(new Error('upload cut off'));
  });
  request.on('error', () => body.destroy(new Error('upload cut off')));
  body.once('close', () => {
    request.unpipe(body);
    request.resume();
  });
  // Without a listener, an error after the consumer is done would be uncaught.
  body.on('error', () => body.destroy());
  request.pipe(body);
  return body;
}
