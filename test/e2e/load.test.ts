import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import { setInterval as every } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createConversation, lone } from '../../bench/latency/conversation.ts';
import { makeTestCerts, type TestCerts } from '../helpers/certs.ts';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { busyness, median } from '../helpers/cpu-load.ts';
import { ask, askOn, connectThrough, openRequest, secureThrough, type Via } from '../helpers/tls-client.ts';

// Real processes under load, on a machine that other tests load too: what is asserted is that nothing hangs or grows;
// `npm run bench:latency` and `npm run soak` print the figures.
interface Status {
  readonly pid: number;
  readonly engine: { readonly state: string; readonly pid: number; readonly restarts: number };
  readonly requests: { readonly total: number };
  readonly tunnels: { readonly open: number };
  readonly nodes: number;
}

const SESSIONS = 50;
const CHUNKS = 40;
const CHUNK_MS = 25;
const TUNNELS = 1_000;
const MB = 1024 * 1024;
const BIG = 64 * MB;

let home: TestHome;
let theirs: TestCerts;
let upstream: https.Server;
let via: Via;
let ca: string;
/** Bytes of `/big` that were taken off the stand-in's hands, and who waits for it to be held back. */
const big = { written: 0, heldBack: () => {} };

beforeAll(async () => {
  // Of the kind that a client can reach itself: an engine that gets no time for seconds is tunnelled past.
  theirs = makeTestCerts(['api.anthropic.com', '127.0.0.1']);
  upstream = https.createServer({ key: theirs.key, cert: theirs.cert, keepAliveTimeout: 60_000 }, answer);
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  home = await createHomeWithCerts({
    COMET_CC_UPSTREAM: `https://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
    COMET_CC_UPSTREAM_CA: theirs.caFile,
    COMET_CC_TRIM_MODE: 'aggressive',
    COMET_CC_TRIM_TRIGGER_TOKENS: '5000',
    COMET_CC_TRIM_KEEP_TOKENS: '3000',
  });
  await home.json(['start', '--json']);
  const access = (await home.json(['env', '--shell', 'json'])) as Record<string, string>;
  const url = new URL(access['HTTPS_PROXY'] as string);
  const credentials = Buffer.from(`${url.username}:${url.password}`).toString('base64');
  via = { port: Number(url.port), connectHeaders: `Proxy-Authorization: Basic ${credentials}\r\n` };
  ca = (await readFile(access['NODE_EXTRA_CA_CERTS'] as string, 'utf8')) + theirs.ca;
});

afterAll(async () => {
  await home.close();
  upstream.closeAllConnections();
  upstream.close();
  await rm(theirs.dir, { recursive: true });
});

function answer(request: IncomingMessage, response: ServerResponse): void {
  const hash = createHash('sha256');
  request.on('error', () => {});
  request.on('data', (chunk: Buffer) => hash.update(chunk));
  request.on('end', () => {
    if (request.url === '/big') return void pour(response);
    const chunks = Number(request.headers['x-bench-chunks'] ?? 0);
    response.writeHead(200, { 'content-type': 'text/event-stream', 'x-received': hash.digest('hex') });
    if (chunks > 0) void stream(response, chunks);
    else response.end(message('Done.'));
  });
}

async function stream(response: ServerResponse, chunks: number): Promise<void> {
  let sent = 0;
  for await (const _ of every(CHUNK_MS)) {
    response.write(`: ${sent} @${performance.now()}@\n\n`);
    sent += 1;
    if (sent === chunks) break;
  }
  response.end(message('Done.'));
}

function pour(response: ServerResponse): void {
  response.writeHead(200, { 'content-length': BIG });
  const more = (): void => {
    while (big.written < BIG) {
      big.written += 65_536;
      if (response.write(Buffer.alloc(65_536))) continue;
      const held = setTimeout(big.heldBack, 500);
      response.once('drain', () => {
        clearTimeout(held);
        more();
      });
      return;
    }
    response.end();
  };
  more();
}

function message(text: string): string {
  const usage = { input_tokens: 10, output_tokens: 1 };
  const about = { id: 'msg_load', type: 'message', role: 'assistant', model: 'claude-opus-5-5', content: [], usage };
  return [
    { type: 'message_start', message: { ...about, stop_reason: null, stop_sequence: null } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 9 } },
    { type: 'message_stop' },
  ]
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join('');
}

async function status(): Promise<Status> {
  return (await home.json(['status', '--json'])) as Status;
}

async function residentMb(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(pid)]);
  return Number(stdout) / 1024;
}

const sentAs = ({ headers, body }: { headers: Readonly<Record<string, string>>; body: Buffer }) => ({
  headers: Object.entries(headers).flat(),
  body,
});

/** How late its latest chunk came, ms; all of them have to come, in order. */
async function read(): Promise<number> {
  const secure = await secureThrough(via, ca);
  const { headers, body } = lone(2_000);
  const about = { 'x-bench-chunks': String(CHUNKS), 'content-length': String(body.length) };
  const request = openRequest(secure, { headers: Object.entries({ ...headers, ...about }).flat() });
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  let latestMs = 0;
  let text = '';
  for await (const chunk of response) {
    const nowMs = performance.now();
    const said = (chunk as Buffer).toString('latin1');
    for (const [, sentMs] of said.matchAll(/@([\d.]+)@/g)) latestMs = Math.max(latestMs, nowMs - Number(sentMs));
    text += said;
  }
  const order = [...text.matchAll(/: (\d+) @/g)].map(([, at]) => Number(at));
  expect(order).toEqual(Array.from({ length: CHUNKS }, (_, at) => at));
  expect(text.endsWith(message('Done.'))).toBe(true);
  secure.destroy();
  return latestMs;
}

describe('one daemon', () => {
  it('streams to fifty sessions at once while memory works, and holds none of them up', async () => {
    const over = new AbortController();
    const talk = async (): Promise<void> => {
      const secure = await secureThrough(via, ca);
      const conversation = createConversation(6_000);
      while (!over.signal.aborted) expect((await askOn(secure, sentAs(conversation.next()))).status).toBe(200);
      secure.destroy();
    };
    const talks = [talk(), talk()];
    const latest = await Promise.all(Array.from({ length: SESSIONS }, read));
    over.abort();
    await Promise.all(talks);
    expect(Math.max(...latest)).toBeLessThan(2_000 * busyness());
    expect((await home.run(['flush'])).code).toBe(0);
    const now = await status();
    expect(now.nodes).toBeGreaterThan(0);
    expect(now.engine).toMatchObject({ state: 'healthy', restarts: 0 });
  });

  it('serves a new request at once among a thousand idle tunnels, and leaks none', async () => {
    const held = new Set<net.Socket>();
    const far = net.createServer((socket) => held.add(socket.on('error', () => {})));
    await once(far.listen(0, '127.0.0.1'), 'listening');
    const authority = `127.0.0.1:${(far.address() as AddressInfo).port}`;
    const tunnels: net.Socket[] = [];
    while (tunnels.length < TUNNELS) {
      const some = await Promise.all(Array.from({ length: 50 }, () => connectThrough({ ...via, authority })));
      expect(new Set(some.map((each) => each.status))).toEqual(new Set([200]));
      tunnels.push(...some.map(({ socket }) => socket));
    }
    const before = await status();
    expect(before.tunnels.open).toBeGreaterThanOrEqual(TUNNELS);
    expect(await residentMb(before.pid)).toBeLessThan(120);
    const taken: number[] = [];
    for (let at = 0; at < 9; at += 1) {
      const fromMs = performance.now();
      expect((await ask(via, ca, sentAs(lone(2_000)))).status).toBe(200);
      taken.push(performance.now() - fromMs);
    }
    expect(median(taken)).toBeLessThan(500 * busyness());
    for (const socket of [...tunnels, ...held]) socket.destroy();
    await expect.poll(async () => (await status()).tunnels.open).toBe(0);
    far.close();
  });

  it('forwards bodies of 32 MB whole, one after the other, and keeps none', async () => {
    const { engine, pid } = await status();
    const sent = lone(32 * MB);
    const hash = createHash('sha256').update(sent.body).digest('hex');
    const one = async (): Promise<void> => {
      const { status, body, rawHeaders } = await ask(via, ca, sentAs(sent));
      expect(status, body.toString()).toBe(200);
      expect(rawHeaders[rawHeaders.indexOf('x-received') + 1]).toBe(hash);
    };
    // What was taken for the first ones is taken again for those after them.
    for (let at = 0; at < 4; at += 1) await one();
    const beforeMb = await residentMb(engine.pid);
    for (let at = 0; at < 5; at += 1) await one();
    expect((await residentMb(engine.pid)) - beforeMb).toBeLessThan(4 * 32);
    expect(await residentMb(pid)).toBeLessThan(120);
    expect((await status()).engine).toMatchObject({ pid: engine.pid, restarts: 0 });
  });

  it('lets a client that does not read hold its upstream back, in bounded memory', async () => {
    expect((await home.run(['flush'])).code).toBe(0);
    const { engine, pid } = await status();
    const beforeMb = (await residentMb(engine.pid)) + (await residentMb(pid));
    const stalled = new Promise<void>((resolve) => {
      big.heldBack = resolve;
    });
    const secure = await secureThrough(via, ca);
    const request = openRequest(secure, { method: 'GET', path: '/big' });
    request.end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.pause();
    await stalled;
    expect(big.written).toBeLessThan(BIG / 2);
    expect((await residentMb(engine.pid)) + (await residentMb(pid)) - beforeMb).toBeLessThan(32);
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    await once(response.resume(), 'end');
    expect(bytes).toBe(BIG);
    secure.destroy();
  });
});
