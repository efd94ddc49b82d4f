import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { makeTestCerts } from '../../helpers/certs.ts';
import type { Json } from '../../helpers/transcripts.ts';
import {
  type Answer,
  type Brain,
  createStandin,
  type Delivery,
  type Standin,
  type StandinOptions,
  scriptedBrain,
  structuredBrain,
} from '../../mock-anthropic/index.ts';

const open: Standin[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((standin) => standin.close()));
});

async function start(options: StandinOptions = {}): Promise<Standin> {
  const standin = await createStandin(options);
  open.push(standin);
  return standin;
}

interface Got {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

async function send(standin: Standin, path: string, body: string | Buffer, method = 'POST'): Promise<Got> {
  const response = await begin(standin, path, body, method);
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) };
}

async function begin(standin: Standin, path: string, body: string | Buffer, method = 'POST'): Promise<IncomingMessage> {
  const client = standin.origin.startsWith('https') ? https : http;
  const request = client.request(standin.origin + path, { method, agent: false, rejectUnauthorized: false });
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return response;
}

const ask = (messages: readonly Json[], more: Json = {}) =>
  JSON.stringify({ model: 'claude-opus-5-5', max_tokens: 10, messages, ...more });
const hello = [{ role: 'user', content: 'hello' }];

function getEvents(body: Buffer | string): readonly Json[] {
  return body
    .toString()
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => JSON.parse(event.slice(event.indexOf('data: ') + 6)) as Json);
}

function answering(delivery: Delivery, text = 'x'.repeat(200)): Brain {
  return () => ({ kind: 'message', blocks: [{ type: 'text', text }], delivery });
}

/** Puts the blocks together from the deltas, as a client does. */
function rebuild(events: readonly Json[]): readonly Json[] {
  const blocks: Json[] = [];
  const inputs: string[] = [];
  for (const event of events) {
    const index = event.index as number;
    if (event.type === 'content_block_start') blocks[index] = { ...(event.content_block as Json) };
    const block = blocks[index];
    if (event.type !== 'content_block_delta' || !block) continue;
    const delta = event.delta as Record<string, string>;
    if (delta.type === 'input_json_delta') {
      inputs[index] = (inputs[index] ?? '') + delta.partial_json;
      block.input = inputs[index] === '' ? {} : tryParse(inputs[index] ?? '');
    } else if (delta.type === 'signature_delta') block.signature = delta.signature;
    else for (const key of ['text', 'thinking']) if (key in delta) block[key] = String(block[key]) + delta[key];
  }
  return blocks;
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

describe('the event stream', () => {
  it('carries thinking, text and tool calls in pieces, and what it carried is taken back', async () => {
    const blocks = [
      { type: 'thinking', thinking: 'Let me think about it for a while, in more than one piece. 🤔' },
      { type: 'text', text: 'Ünïcode and 🤔 '.repeat(10) },
      { type: 'tool_use', name: 'Bash', input: { command: 'ls', list: [1, 2, { a: 'ü' }] } },
      { type: 'tool_use', name: 'Noop', input: {} },
    ];
    const standin = await start({ brain: () => ({ kind: 'message', blocks }) });
    const { status, headers, body } = await send(standin, '/v1/messages?beta=true', ask(hello, { stream: true }));
    expect(status).toBe(200);
    expect(headers['content-type']).toContain('text/event-stream');
    expect(headers['request-id']).toMatch(/^req_/);
    const events = getEvents(body);
    expect(events[0]).toMatchObject({
      type: 'message_start',
      message: { role: 'assistant', content: [], usage: { input_tokens: 2 } },
    });
    expect(events[1]).toEqual({ type: 'ping' });
    expect(events.at(-2)).toMatchObject({ type: 'message_delta', delta: { stop_reason: 'tool_use' } });
    expect(events.at(-1)).toEqual({ type: 'message_stop' });
    const content = rebuild(events);
    expect(content).toEqual(standin.requests[0]?.answer);
    expect(content).toMatchObject(blocks);
    const results = content.flatMap((block) =>
      block.type === 'tool_use' ? [{ type: 'tool_result', tool_use_id: block.id, content: '' }] : [],
    );
    const next = [...hello, { role: 'assistant', content }, { role: 'user', content: results }];
    expect((await send(standin, '/v1/messages', ask(next))).status).toBe(200);
    expect(standin.refused).toEqual([]);
  });

  it('is one JSON message when streaming is not asked for', async () => {
    const standin = await start();
    const { body } = await send(standin, '/v1/messages', ask(hello));
    expect(JSON.parse(body.toString())).toMatchObject({
      type: 'message',
      content: [{ type: 'text', text: 'Understood: hello' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 2, cache_read_input_tokens: 0, cache_creation: { ephemeral_5m_input_tokens: 0 } },
    });
  });

  it.each([
    ['gzip', gunzipSync],
    ['br', brotliDecompressSync],
  ] as const)('comes compressed as %s, in chunks of three bytes', async (compress, decode) => {
    const standin = await start({ brain: answering({ compress, chunkBytes: 3 }) });
    const { headers, body } = await send(standin, '/v1/messages', ask(hello, { stream: true }));
    expect(headers['content-encoding']).toBe(compress);
    expect(rebuild(getEvents(decode(body)))).toEqual([{ type: 'text', text: 'x'.repeat(200) }]);
  });

  it('stops at a gate until it is released, everything before it delivered', async () => {
    let release = () => {};
    const until = new Promise<void>((resolve) => {
      release = resolve;
    });
    const standin = await start({ brain: answering({ pause: { afterDeltas: 2, until }, compress: 'gzip' }) });
    const response = await begin(standin, '/v1/messages', ask(hello, { stream: true }));
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    await once(response, 'data');
    expect(standin.requests[0]?.end).toBe('pending');
    release();
    await once(response, 'end');
    expect(getEvents(gunzipSync(Buffer.concat(chunks))).at(-1)).toEqual({ type: 'message_stop' });
  });

  it('is cut after the given number of deltas', async () => {
    const standin = await start({ brain: answering({ cutAfterDeltas: 2 }) });
    const response = await begin(standin, '/v1/messages', ask(hello, { stream: true }));
    let seen = '';
    response.on('data', (chunk: Buffer) => {
      seen += chunk.toString();
    });
    const [error] = (await once(response, 'error')) as [Error];
    expect(error.message).toBe('aborted');
    expect(getEvents(seen).filter((event) => event.type === 'content_block_delta')).toHaveLength(2);
    expect((await standin.waitFor((request) => request.end !== 'pending')).end).toBe('cut');
  });

  it('may end in an error event', async () => {
    const standin = await start({
      brain: answering({ errorAfterDeltas: { count: 1, type: 'overloaded_error', message: 'Overloaded' } }),
    });
    const { status, body } = await send(standin, '/v1/messages', ask(hello, { stream: true }));
    expect(status).toBe(200);
    expect(getEvents(body).at(-1)).toEqual({
      type: 'error',
      error: { type: 'overloaded_error', message: 'Overloaded' },
    });
  });

  it('notices a client that leaves', async () => {
    const never = new Promise<void>(() => {});
    const standin = await start({ brain: answering({ pause: { afterDeltas: 1, until: never } }) });
    const response = await begin(standin, '/v1/messages', ask(hello, { stream: true }));
    await once(response, 'data');
    response.destroy();
    expect((await standin.waitFor((request) => request.end !== 'pending')).end).toBe('aborted');
  });
});

describe('errors', () => {
  it('of the rules come worded, kept, and unbilled', async () => {
    const standin = await start();
    const { status, body } = await send(standin, '/v1/messages', ask([{ role: 'assistant', content: 'x' }]));
    expect(status).toBe(400);
    expect(JSON.parse(body.toString())).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'messages: first message must use the "user" role' },
      request_id: expect.stringMatching(/^req_/),
    });
    expect(standin.refused).toHaveLength(1);
    expect(standin.totals()).toMatchObject({ requests: 1, refused: 1, cost: 0 });
  });

  it('of the brain come with their headers and are no refusals', async () => {
    const limited: Answer = {
      kind: 'error',
      status: 429,
      type: 'rate_limit_error',
      message: 'slow down',
      headers: { 'retry-after': '7' },
    };
    const standin = await start({
      brain: () => limited,
      headers: { 'anthropic-ratelimit-unified-status': 'rejected' },
    });
    const { status, headers } = await send(standin, '/v1/messages', ask(hello));
    expect(status).toBe(429);
    expect(headers).toMatchObject({ 'retry-after': '7', 'anthropic-ratelimit-unified-status': 'rejected' });
    expect(standin.refused).toEqual([]);
  });

  it('of a brain that throws are a 500', async () => {
    const brain: Brain = () => {
      throw new Error('unexpected prompt');
    };
    const { status, body } = await send(await start({ brain }), '/v1/messages', ask(hello));
    expect(status).toBe(500);
    expect(body.toString()).toContain('unexpected prompt');
  });

  it('400 for what is no JSON, 413 above 32 MB', async () => {
    const standin = await start();
    expect((await send(standin, '/v1/messages', '{"model":')).status).toBe(400);
    const large = await send(standin, '/v1/messages', Buffer.alloc(32 * 1024 * 1024 + 1, 32));
    expect(large.status).toBe(413);
    expect(JSON.parse(large.body.toString())).toEqual({
      error: { type: 'request_too_large', message: 'Request exceeds the maximum size' },
    });
    expect(standin.refused).toHaveLength(2);
  });

  it('keeps a truncated upload', async () => {
    const standin = await start();
    const socket = net.connect(standin.port, '127.0.0.1');
    socket.end('POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"mod');
    const request = await standin.waitFor(() => true);
    expect(request).toMatchObject({ end: 'aborted', status: 0 });
    expect(request.bytes.toString()).toBe('{"mod');
    socket.destroy();
  });
});

describe('other paths', () => {
  it('count tokens under the same rules, unbilled', async () => {
    const standin = await start();
    const counted = await send(
      standin,
      '/v1/messages/count_tokens?beta=true',
      JSON.stringify({ model: 'claude-opus-5', messages: hello }),
    );
    expect(JSON.parse(counted.body.toString())).toEqual({ input_tokens: 2 });
    const refused = await send(
      standin,
      '/v1/messages/count_tokens',
      JSON.stringify({ model: 'claude-opus-5', messages: [] }),
    );
    expect(refused.status).toBe(400);
    expect(standin.totals().requests).toBe(0);
  });

  it('are echoed with the digest of the body', async () => {
    const standin = await start();
    const bytes = Buffer.from([0, 255, 1, 2]);
    const { body } = await send(standin, '/api/event_logging/v2/batch?x=1', bytes, 'PUT');
    expect(JSON.parse(body.toString())).toMatchObject({
      method: 'PUT',
      path: '/api/event_logging/v2/batch?x=1',
      bytes: 4,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    });
    expect(standin.requests[0]?.bytes.equals(bytes)).toBe(true);
    expect((await send(standin, '/api/hello', '', 'HEAD')).status).toBe(200);
  });
});

describe('brains', () => {
  it('play scripted tool rounds while other sessions run', async () => {
    const brain = scriptedBrain([
      {
        when: 'port',
        rounds: [
          [{ type: 'tool_use', id: 'toolu_1', name: 'Read', input: {} }],
          [{ type: 'text', text: 'It is 8471.' }],
        ],
      },
    ]);
    const standin = await start({ brain });
    const prompt = {
      role: 'user',
      content: [
        { type: 'text', text: '<system-reminder>port</system-reminder>' },
        { type: 'text', text: 'which port?' },
      ],
    };
    const first = JSON.parse((await send(standin, '/v1/messages', ask([prompt]))).body.toString());
    expect(first).toMatchObject({ stop_reason: 'tool_use', content: [{ id: 'toolu_1' }] });
    const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '8471' }] };
    const second = [prompt, { role: 'assistant', content: first.content }, result];
    expect(JSON.parse((await send(standin, '/v1/messages', ask(second))).body.toString())).toMatchObject({
      stop_reason: 'end_turn',
      content: [{ text: 'It is 8471.' }],
    });
    const other = JSON.parse((await send(standin, '/v1/messages', ask(hello))).body.toString());
    expect(other.content[0].text).toBe('Understood: hello');
  });

  it('answer a JSON schema through the StructuredOutput tool, then end', async () => {
    const tools = [{ name: 'StructuredOutput', input_schema: { type: 'object', required: ['n'] } }];
    const brain = structuredBrain(
      (_, schema) => ({ n: 1, wanted: schema.required }),
      () => ({ kind: 'message', blocks: [] }),
    );
    const standin = await start({ brain });
    const first = JSON.parse((await send(standin, '/v1/messages', ask(hello, { tools }))).body.toString());
    expect(first.content).toMatchObject([
      { type: 'tool_use', name: 'StructuredOutput', input: { n: 1, wanted: ['n'] } },
    ]);
    const result = {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: first.content[0].id, content: 'ok' }],
    };
    const messages = [...hello, { role: 'assistant', content: first.content }, result];
    expect(
      JSON.parse((await send(standin, '/v1/messages', ask(messages, { tools }))).body.toString()).stop_reason,
    ).toBe('end_turn');
    expect(standin.requests.map((request) => request.class)).toEqual(['structured', 'structured']);
  });
});

describe('the listener', () => {
  it('speaks TLS with the given certificate, and keeps connections', async () => {
    const certs = makeTestCerts(['127.0.0.1']);
    rmSync(certs.dir, { recursive: true });
    const standin = await start({ tls: certs });
    expect(standin.origin).toBe(`https://127.0.0.1:${standin.port}`);
    const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ca: certs.ca });
    const ports = new Set<number | undefined>();
    for (let at = 0; at < 3; at += 1) {
      const request = https.request(`${standin.origin}/v1/messages`, { method: 'POST', agent });
      request.end(ask(hello, { stream: true }));
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      ports.add(response.socket.localPort);
      response.resume();
      await once(response, 'close');
    }
    await standin.waitFor((request) => request.index === 2 && request.end !== 'pending');
    agent.destroy();
    expect(ports.size).toBe(1);
    expect(standin.requests.map((request) => request.end)).toEqual(['complete', 'complete', 'complete']);
  });

  it('closes twice, with streams open', async () => {
    const standin = await start({ brain: answering({ before: new Promise(() => {}) }) });
    const request = http.request(`${standin.origin}/v1/messages`, { method: 'POST' });
    request.end(ask(hello));
    const failed = once(request, 'error');
    await standin.waitFor(() => true);
    await Promise.all([standin.close(), standin.close()]);
    await failed;
  });
});

describe('the virtual clock', () => {
  it('decides what is still cached', async () => {
    let now = 0;
    const standin = await start({ clock: { now: () => now } });
    const content = [{ type: 'text', text: 'q'.repeat(4000), cache_control: { type: 'ephemeral' } }];
    const body = ask([{ role: 'user', content }]);
    for (const at of [0, 299_999, 599_998, 900_000]) {
      now = at;
      await send(standin, '/v1/messages', body);
    }
    expect(standin.requests.map((request) => request.usage?.cacheRead)).toEqual([0, 1000, 1000, 0]);
    expect(standin.totals()).toMatchObject({
      requests: 4,
      cacheRead: 2000,
      cacheWrite5m: 2000,
      cost: 2000 * 1.25 + 2000 * 0.05,
    });
  });
});
