import type { IncomingMessage } from 'node:http';
import { PassThrough, type Readable } from 'node:stream';
import { CHILD_HEADER, headerValues } from './headers.ts';

export interface RequestFacts {
  readonly hasBody: boolean;
  /** What the rewriter may see it as; null for all that passes through. */
  readonly path: 'messages' | 'count_tokens' | null;
}

/** A request that cannot be forwarded as one message to the one target. */
export interface RejectedRequest {
  readonly status: 400 | 421;
  readonly message: string;
}

/** Only requests of Claude Code for the target host, over our own TLS, are ours to look into. */
export function inspectRequest(request: IncomingMessage, isSSL: boolean, host: string): RequestFacts | RejectedRequest {
  const raw = request.rawHeaders;
  const hosts = headerValues(raw, 'host').map((value) => value.toLowerCase());
  if (hosts.length > 1) return { status: 400, message: 'more than one Host' };
  if (!isSSL || (hosts[0] !== host && hosts[0] !== `${host}:443`))
    return { status: 421, message: 'not the host served' };
  const coding = headerValues(raw, 'transfer-encoding');
  const lengths = headerValues(raw, 'content-length');
  const chunked = coding.length > 0;
  if (chunked && (lengths.length > 0 || coding.join(',').toLowerCase() !== 'chunked')) {
    return { status: 400, message: 'ambiguous message length' };
  }
  return { hasBody: chunked || Number(lengths[0] ?? 0) > 0, path: pathOf(request) };
}

function pathOf(request: IncomingMessage): RequestFacts['path'] {
  const raw = request.rawHeaders;
  const encoding = headerValues(raw, 'content-encoding').join(',').trim().toLowerCase();
  const isClient = headerValues(raw, 'user-agent')[0]?.startsWith('claude-cli/') ?? false;
  const isChild = headerValues(raw, CHILD_HEADER).length > 0;
  if (request.method !== 'POST' || !isClient || isChild || (encoding !== '' && encoding !== 'identity')) return null;
  const path = request.url?.split('?', 1)[0];
  if (path === '/v1/messages') return 'messages';
  return path === '/v1/messages/count_tokens' ? 'count_tokens' : null;
}

/**
 * The whole body, or where it is larger than `capBytes` a stream of it.
 *
 * @throws when the client leaves before its end
 */
export function readBody(request: IncomingMessage, capBytes: number): Promise<Buffer | Readable> {
  const length = Number(request.headers['content-length'] ?? 0);
  if (length > capBytes) return Promise.resolve(streamBody(request));
  return new Promise((resolve, reject) => {
    const body = createBody(length);
    const onData = (chunk: Buffer): void => {
      body.add(chunk);
      if (body.bytes() <= capBytes) return;
      settled();
      request.pause();
      resolve(streamBody(request, [body.taken()]));
    };
    const onEnd = (): void => {
      settled();
      resolve(body.taken());
    };
    const onClose = (): void => {
      settled();
      reject(new Error('the upload was cut'));
    };
    const settled = (): void => {
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
    };
    request.on('data', onData).once('end', onEnd).once('close', onClose).once('error', onClose);
    request.resume();
  });
}

/** Memory of the announced length as a whole, so that no chunk outlives its turn of the event loop; more can come. */
function createBody(announced: number) {
  const whole = Buffer.allocUnsafeSlow(announced);
  const beyond: Buffer[] = [];
  let bytes = 0;
  return {
    add(chunk: Buffer): void {
      if (bytes + chunk.length <= whole.length) chunk.copy(whole, bytes);
      else beyond.push(chunk);
      bytes += chunk.length;
    },
    bytes: () => bytes,
    taken(): Buffer {
      if (beyond.length === 0) return whole.subarray(0, bytes);
      const inside = bytes - beyond.reduce((total, chunk) => total + chunk.length, 0);
      return Buffer.concat([whole.subarray(0, inside), ...beyond]);
    },
  };
}

/**
 * The body as it comes. A stream of its own, because whoever consumes it destroys it when the response is early, and
 * that must not take the client's connection along.
 */
export function streamBody(request: IncomingMessage, taken: readonly Buffer[] = []): Readable {
  const body = new PassThrough();
  for (const chunk of taken) body.write(chunk);
  request.once('close', () => {
    if (!request.complete) body.destroy(new Error('the upload was cut'));
  });
  request.on('error', () => body.destroy(new Error('the upload was cut')));
  body.once('close', () => {
    request.unpipe(body);
    request.resume();
  });
  // Kept: an error on a body that its consumer has let go of is nobody's.
  body.on('error', () => body.destroy());
  request.pipe(body);
  return body;
}
