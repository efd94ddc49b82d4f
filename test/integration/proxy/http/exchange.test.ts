import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { MessagesRequest } from '../../../../proxy/ports.ts';
import { type Rig, type RigOptions, removeRigCerts, startRig } from '../../../helpers/proxy-rig.ts';
import { sseMessage } from '../../../helpers/sse.ts';
import { askOn, CLIENT, openRequest, secureThrough } from '../../../helpers/tls-client.ts';

let rig: Rig | null = null;

async function start(options: RigOptions = {}): Promise<Rig> {
  rig = await startRig(options);
  return rig;
}

afterEach(async () => {
  await rig?.close();
  rig = null;
});
afterAll(removeRigCerts);

const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const value = (raw: readonly string[], name: string): string[] =>
  raw.filter((_, at) => at % 2 === 1 && raw[at - 1]?.toLowerCase() === name);

describe('rate limits', () => {
  it('of every answered messages request are handed over, a refusal and an unread body too', async () => {
    const told: unknown[] = [];
    const quota = { observeLimits: (answer: unknown) => void told.push(answer) };
    const headers = ['anthropic-ratelimit-unified-5h-utilization', '0.81', 'Retry-After', '7', 'x-other', '1'];
    let status = 200;
    const { ask } = await start({
      deps: { quota, bodyCapBytes: 10 },
      answer(_request, response) {
        response.writeHead(status, headers);
        response.end('{}');
      },
    });
    await ask({ headers: CLIENT, body: '{}' });
    status = 429;
    await ask({ headers: CLIENT, body: '{}' });
    await ask({ headers: CLIENT, body: JSON.stringify({ longer: 'than may be read' }) });
    const read = { 'anthropic-ratelimit-unified-5h-utilization': '0.81', 'retry-after': '7' };
    expect(told).toEqual([200, 429, 429].map((code) => ({ status: code, headers: read })));
  });

  it('cost no request when taking them in fails', async () => {
    const quota = {
      observeLimits() {
        throw new Error('broken');
      },
    };
    const { ask } = await start({ deps: { quota } });
    expect((await ask({ headers: CLIENT, body: '{}' })).status).toBe(200);
  });
});

describe('pass-through', () => {
  it('is byte-identical over 10,000 fuzzed requests, none of which the rewriter sees', {
    timeout: 600_000,
  }, async () => {
    const { via, ca, standIn, rewrites } = await start({
      answer(request, response, body) {
        const [status, reason] = String(request.headers['x-want']).split(' ');
        response.writeHead(Number(status), reason, [
          'X-Twice',
          'b',
          'x-twice',
          'a',
          'Set-Cookie',
          'q=1',
          'ETag',
          '"e"',
        ]);
        response.end(body);
      },
    });
    const secure = await secureThrough(via, ca);
    const cases = fc.record({
      method: fc.constantFrom('POST', 'PUT', 'PATCH', 'GET', 'DELETE', 'OPTIONS'),
      path: fc.constantFrom(
        '/api/event_logging/v2/batch',
        '/v1/models?limit=1',
        '/mcp-registry/x',
        '/v1/messages/batches',
      ),
      name: fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,12}$/).map((name) => `X-Z-${name}`),
      text: fc.stringMatching(/^[!-~]([ -~]{0,30}[!-~])?$/),
      body: fc.uint8Array({ maxLength: 3_000 }),
      status: fc.constantFrom(200, 201, 400, 404, 429, 500, 529),
    });
    await fc.assert(
      fc.asyncProperty(cases, async ({ method, path, name, text, body: bytes, status }) => {
        const sent = method === 'GET' || method === 'OPTIONS' ? undefined : Buffer.from(bytes);
        const headers = ['X-WANT', `${status} Because`, name, text, 'Accept', 'a', 'accept', 'b'];
        const reply = await askOn(secure, { method, path, headers, ...(sent ? { body: sent } : {}) });
        const got = standIn.received.at(-1);
        const fields = got?.rawHeaders.filter((_, at, all) => {
          const lower = all[at - (at % 2)]?.toLowerCase() as string;
          return !['host', 'connection', 'content-length'].includes(lower);
        });
        const body = sent ?? Buffer.alloc(0);
        const seen = {
          request: [got?.method, got?.url, fields, got?.body],
          reply: [reply.status, reply.reason, reply.rawHeaders.slice(0, 8), reply.body],
        };
        const answered = ['X-Twice', 'b', 'x-twice', 'a', 'Set-Cookie', 'q=1', 'ETag', '"e"'];
        const exact = { request: [method, path, headers, body], reply: [status, 'Because', answered, body] };
        // vitest's own comparison takes an eighth of the time of ten thousand requests; it shows the difference.
        if (!isDeepStrictEqual(seen, exact)) expect(seen).toStrictEqual(exact);
      }),
      { numRuns: 10_000 },
    );
    secure.destroy();
    expect(rewrites).toEqual([]);
    expect(rig?.proxy.stats()).toMatchObject({ rewritten: 0, failed_open: 0 });
  });

  it.each([
    ['another client', ['user-agent', 'curl/8', 'content-type', 'application/json']],
    ['a child process of comet-cc', [...CLIENT, 'X-Comet-CC-Child', 'nonce']],
    ['an encoded body', [...CLIENT, 'content-encoding', 'gzip']],
  ])('takes in POST /v1/messages of %s, the marker stripped', async (_name, headers) => {
    const { ask, standIn, rewrites } = await start();
    const body = randomBytes(300);
    const reply = await ask({ headers, body });
    expect(reply.body.equals(body)).toBe(true);
    expect(rewrites).toEqual([]);
    expect(value(standIn.received[0]?.rawHeaders ?? [], 'x-comet-cc-child')).toEqual([]);
  });

  it('carries chunked uploads, response trailers, HEAD and empty bodies', async () => {
    const { ask, via, ca, standIn } = await start({
      answer(request, response, body) {
        if (request.method === 'HEAD') return void response.writeHead(200, { 'content-length': 77 }).end();
        if (request.url === '/none') return void response.writeHead(204).end();
        response.writeHead(200, { Trailer: 'X-Sum' });
        response.write(body);
        response.addTrailers({ 'X-Sum': '42' });
        response.end();
      },
    });
    const head = await ask({ method: 'HEAD', path: '/api/hello' });
    expect([head.status, value(head.rawHeaders, 'content-length'), head.body.length]).toEqual([200, ['77'], 0]);
    expect((await ask({ method: 'GET', path: '/none' })).status).toBe(204);
    const secure = await secureThrough(via, ca);
    const reply = await askOn(secure, { path: '/x', headers: ['Transfer-Encoding', 'chunked'], body: 'in chunks' });
    expect(reply.body.toString()).toBe('in chunks');
    expect(reply.trailers).toEqual(['X-Sum', '42']);
    secure.destroy();
    expect(standIn.received.length).toBe(3);
  });

  it.each(['Ωkay', 'Ökay', ''])('carries the reason %j of a status', async (reason) => {
    const { ask } = await start({
      answer: (_, { socket }) => void socket?.end(`HTTP/1.1 200 ${reason}\r\ncontent-length: 2\r\n\r\nok`),
    });
    const reply = await ask({ headers: CLIENT, body: '{}' });
    expect([reply.status, Buffer.from(reply.reason, 'latin1').toString()]).toEqual([200, reason]);
    expect(reply.body.toString()).toBe('ok');
  });

  it('answers where the reason of a status is no text', async () => {
    const head = Buffer.from('HTTP/1.1 200 \xd6kay\x01\r\ncontent-length: 2\r\n\r\nok', 'latin1');
    const { ask } = await start({ answer: (_, { socket }) => void socket?.end(head) });
    expect((await ask({ headers: CLIENT, body: '{}' })).body.toString()).toBe('ok');
  });

  it('passes over early hints', async () => {
    const { via, ca, standIn } = await start({
      answer(_, response) {
        response.writeEarlyHints({ link: '</a.css>; rel=preload' });
        response.end('ok');
      },
    });
    const secure = await secureThrough(via, ca);
    for (const path of ['/v1/messages', '/v1/models']) {
      const { status, body } = await askOn(secure, { path, headers: CLIENT, body: '{}' });
      expect([status, body.toString()]).toEqual([200, 'ok']);
    }
    expect(standIn.sockets.size).toBe(1);
    secure.destroy();
  });

  it('carries 60 KB of headers both ways', async () => {
    const long = 'x'.repeat(60_000);
    const { ask, standIn } = await start({
      answer: (_, response) => void response.writeHead(200, { 'x-long': long }).end('ok'),
    });
    const reply = await ask({ headers: [...CLIENT, 'X-Long', long], body: '{}' });
    expect([reply.status, value(reply.rawHeaders, 'x-long')]).toEqual([200, [long]]);
    expect(value(standIn.received[0]?.rawHeaders ?? [], 'x-long')).toEqual([long]);
  });

  it('answers Expect: 100-continue itself and forwards the body', async () => {
    const { ask, standIn } = await start();
    const reply = await ask({ headers: [...CLIENT, 'Expect', '100-continue'], body: '{"a":1}' });
    expect(reply.body.toString()).toBe('{"a":1}');
    expect(value(standIn.received[0]?.rawHeaders ?? [], 'expect')).toEqual([]);
  });
});

describe('messages', () => {
  it('ended when their last bytes arrived, however long upstream keeps the stream open', async () => {
    let nowMs = 1_000;
    let held: ServerResponse | null = null;
    const { via, ca, nextSeen } = await start({
      deps: { clock: { now: () => nowMs } },
      answer(_request, response) {
        held = response;
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(sseMessage('hello'));
      },
    });
    const secure = await secureThrough(via, ca);
    const request = openRequest(secure, { headers: CLIENT });
    request.end('{"model":"m"}');
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of response) {
      text += chunk;
      if (!text.includes('message_stop')) continue;
      nowMs = 5_000;
      (held as ServerResponse | null)?.end();
    }
    expect(await nextSeen()).toMatchObject({ end: 'complete', atMs: 1_000 });
    secure.destroy();
  });

  it('reach the rewriter without credentials, and upstream with them', async () => {
    const { ask, standIn, rewrites, nextSeen } = await start({
      answer: (_request, response) => {
        response.writeHead(200, {
          'content-type': 'text/event-stream',
          'anthropic-ratelimit-unified-status': 'allowed',
        });
        response.end(sseMessage('hello'));
      },
      rewrite: () => Buffer.from('{"rewritten":true}'),
    });
    const headers = [
      ...CLIENT,
      'Authorization',
      'Bearer sk-secret',
      'X-Api-Key',
      'k',
      'x-claude-code-session-id',
      's1',
    ];
    const reply = await ask({ headers, body: '{"model":"m"}' });
    expect(reply.body.equals(sseMessage('hello'))).toBe(true);
    expect(rewrites[0]).toMatchObject({ path: 'messages', headers: { 'x-claude-code-session-id': 's1' } });
    expect(JSON.stringify(rewrites[0]?.headers)).not.toMatch(/sk-secret|x-api-key/i);
    const got = standIn.received[0];
    expect(got?.body.toString()).toBe('{"rewritten":true}');
    expect(value(got?.rawHeaders ?? [], 'authorization')).toEqual(['Bearer sk-secret']);
    expect(value(got?.rawHeaders ?? [], 'content-length')).toEqual(['18']);
    expect(await nextSeen()).toEqual({
      status: 200,
      end: 'complete',
      atMs: expect.any(Number),
      errorText: '',
      message: {
        model: 'claude-test',
        content: [{ type: 'text', text: 'hello' }],
        stopReason: 'end_turn',
        usage: { input: 3, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 9 },
      },
    });
    expect(rig?.proxy.stats()).toEqual({ total: 1, rewritten: 1, passed_through: 0, failed_open: 0 });
  });

  it.each([
    ['throws', () => Promise.reject(new Error('no'))],
    ['hangs', () => new Promise<never>(() => {})],
  ])('go as received when the rewriter %s', async (_name, rewrite) => {
    const { ask, proxy } = await start({ rewrite, deps: { rewriteDeadlineMs: 60 } });
    const reply = await ask({ headers: CLIENT, body: '{"n":12345678901234567890,"s":"\\ud800"}' });
    expect(reply.body.toString()).toBe('{"n":12345678901234567890,"s":"\\ud800"}');
    expect(proxy.stats()).toEqual({ total: 1, rewritten: 0, passed_through: 0, failed_open: 1 });
  });

  it.each([
    ['is late', 60, () => {}],
    ['is late by a deadline that it extended', 20, ({ extendDeadline }: MessagesRequest) => extendDeadline?.(40)],
  ])('go as their plan has them when the rewriter %s', async (_name, rewriteDeadlineMs, begin) => {
    const { ask, nextSeen } = await start({
      rewrite(request) {
        begin(request);
        return new Promise<never>(() => {});
      },
      replay: () => Buffer.from('{"replayed":1}'),
      deps: { rewriteDeadlineMs },
    });
    expect((await ask({ headers: CLIENT, body: '{}' })).body.toString()).toBe('{"replayed":1}');
    expect(await nextSeen()).toMatchObject({ status: 200 });
  });

  it('count_tokens goes through the rewriter too, and no message is made of its answer', async () => {
    const { ask, rewrites, nextSeen } = await start({
      answer: (_request, response) => void response.end('{"input_tokens":5}'),
    });
    await ask({ path: '/v1/messages/count_tokens?beta=true', headers: CLIENT, body: '{}' });
    expect(rewrites[0]?.path).toBe('count_tokens');
    expect(await nextSeen()).toMatchObject({ status: 200, end: 'complete', message: null });
  });

  it.each([
    ['invalid JSON', Buffer.from('{"model": nope')],
    ['no text at all', randomBytes(500)],
    ['nothing', Buffer.alloc(0)],
  ])('that are %s arrive as sent', async (_name, body) => {
    const { ask, standIn } = await start();
    await ask({ headers: CLIENT, body });
    expect(standIn.received[0]?.body.equals(body)).toBe(true);
  });

  it('of 32 MB arrive whole, parsed or beyond the cap', async () => {
    const body = randomBytes(32 * 1024 * 1024);
    const seen: string[] = [];
    const answer: RigOptions['answer'] = (_request, response, got) => {
      seen.push(hash(got));
      response.end('ok');
    };
    const first = await start({ answer });
    await first.ask({ headers: CLIENT, body });
    expect(first.rewrites.length).toBe(1);
    await first.close();
    const capped = await start({ answer, deps: { bodyCapBytes: 1024 * 1024 } });
    await capped.ask({ headers: CLIENT, body });
    await capped.ask({ headers: [...CLIENT, 'Transfer-Encoding', 'chunked'], body });
    expect(capped.rewrites.length).toBe(0);
    expect(seen).toEqual([hash(body), hash(body), hash(body)]);
  });

  it.each([429, 529, 401])('return a %i verbatim after one upstream request', async (status) => {
    const error = '{"type":"error","error":{"type":"some_error","message":"m"}}\n';
    const { ask, standIn, nextSeen } = await start({
      answer(_request, response) {
        response.writeHead(status, ['Retry-After', '7', 'X-Should-Retry', 'true', 'request-id', 'req_1']);
        response.end(error);
      },
    });
    const reply = await ask({ headers: CLIENT, body: '{}' });
    expect([reply.status, reply.body.toString()]).toEqual([status, error]);
    expect(reply.rawHeaders.slice(0, 6)).toEqual(['Retry-After', '7', 'X-Should-Retry', 'true', 'request-id', 'req_1']);
    expect(standIn.received.length).toBe(1);
    expect(await nextSeen()).toMatchObject({ status, end: 'complete', errorText: error });
  });
});

// One zstd frame of raw blocks: the decoder is what is tested, not a compressor.
function zstdRaw(bytes: Buffer): Buffer {
  const blocks: Buffer[] = [Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58])];
  for (let at = 0; at < bytes.length; at += 1_000) {
    const part = bytes.subarray(at, at + 1_000);
    const header = (part.length << 3) | (at + 1_000 >= bytes.length ? 1 : 0);
    blocks.push(Buffer.from([header & 255, (header >> 8) & 255, (header >> 16) & 255]), part);
  }
  return Buffer.concat(blocks);
}

describe('the tee', () => {
  const plain = sseMessage('compressed, in parts — €');
  it.each([
    ['gzip', gzipSync(plain)],
    ['br', brotliCompressSync(plain)],
    ['zstd', zstdRaw(plain)],
    ['identity', plain],
  ])('decodes %s while the client gets the original bytes', async (encoding, bytes) => {
    const { ask, nextSeen } = await start({
      answer(_request, response) {
        response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': encoding });
        for (let at = 0; at < bytes.length; at += 37) response.write(bytes.subarray(at, at + 37));
        response.end();
      },
    });
    const reply = await ask({ headers: CLIENT, body: '{}' });
    expect(reply.body.equals(bytes)).toBe(true);
    const seen = await nextSeen();
    expect(seen.message?.content).toEqual([{ type: 'text', text: 'compressed, in parts — €' }]);
    expect(seen.end).toBe('complete');
  });

  it.each([
    ['an encoding it does not know', 'snappy', plain],
    ['bytes that do not decode', 'gzip', plain],
    ['zstd that does not decode', 'zstd', plain],
  ])('loses nothing but the capture on %s', async (_name, encoding, bytes) => {
    const { ask, nextSeen } = await start({
      answer(_request, response) {
        response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': encoding });
        response.end(bytes);
      },
    });
    expect((await ask({ headers: CLIENT, body: '{}' })).body.equals(bytes)).toBe(true);
    expect(await nextSeen()).toMatchObject({ status: 200, message: null });
  });

  it('gives up on a body that decodes to more than it may hold', async () => {
    const bomb = gzipSync(Buffer.alloc(4 * 1024 * 1024));
    const { ask, nextSeen } = await start({
      deps: { teeCapBytes: 1024 * 1024 },
      answer: (_request, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
    });
    expect((await ask({ headers: CLIENT, body: '{}' })).body.equals(bomb)).toBe(true);
    expect(await nextSeen()).toMatchObject({ message: null });
  });

  it('is told of an event stream without its end', async () => {
    const { ask, nextSeen } = await start({
      answer: (_request, response) =>
        void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(plain.subarray(0, 300)),
    });
    await ask({ headers: CLIENT, body: '{}' });
    expect(await nextSeen()).toMatchObject({ end: 'cut_by_upstream' });
  });
});
