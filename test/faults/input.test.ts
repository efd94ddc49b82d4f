import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import http, { type RequestListener } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CLI } from '../helpers/cli.ts';
import { busyness } from '../helpers/cpu-load.ts';

const HOOKS = ['session-start', 'user-prompt-submit', 'compact', 'session-end', 'subagents'];
const LATE_MS = 2_000;
const HANGS_MS = 100_000;
const noise = (seed: number, outputLength: number): Buffer =>
  createHash('shake256', { outputLength }).update(String(seed)).digest();
const TOLD = { session_id: 's-1', cwd: '/home/ada/shop', prompt: 'What about the port?', source: 'clear' };
const told = (event: string, more: object = {}): string => JSON.stringify({ ...TOLD, hook_event_name: event, ...more });

const MALFORMED: readonly (readonly [name: string, bytes: string | Buffer])[] = [
  ['nothing', ''],
  ['a NUL', '\u0000'],
  ['a bracket', '{'],
  ['another value', '[null, 7]'],
  ['null', 'null'],
  ['fields of other types', '{"session_id":7,"cwd":[],"prompt":{},"hook_event_name":null}'],
  ['a half object', told('SessionStart').slice(0, -9)],
  ['two objects', told('SessionStart') + told('SessionStart')],
  ['a byte order mark', `\ufeff${told('SessionStart')}`],
  ['a relative folder', told('SessionStart', { cwd: '../..' })],
  ['a prototype', '{"__proto__":{"session_id":"x","cwd":"/"},"constructor":1}'],
  ['torn characters', Buffer.from(told('SessionStart', { prompt: '€' }), 'utf8').subarray(0, 60)],
  ['noise', noise(1, 5_000)],
  ['a megabyte of noise', noise(2, 1_000_000)],
  ['a megabyte of brackets', '{"a":'.repeat(200_000)],
  ['more than is read', told('UserPromptSubmit', { prompt: 'x'.repeat(6_000_000) })],
];

/** What an engine must not answer; each is asked with an input that is right. */
const ANSWERS: readonly (readonly [name: string, answer: RequestListener])[] = [
  ['no JSON', (_, response) => response.end('<html>')],
  ['noise', (_, response) => response.end(noise(3, 100_000))],
  ['another form', (_, response) => response.end('{"result":{"text":{"a":1}}}')],
  ['null', (_, response) => response.end('null')],
  ['an error', (_, response) => response.writeHead(500).end('{"error":{"code":"x","message":"y"}}')],
  ['half a body', (_, response) => void response.writeHead(200, { 'content-length': 100 }).write('{"result"')],
  ['a cut', (request) => request.socket.destroy()],
  ['no head', (request) => void request.socket.end('HTTP/1.1 2')],
  ['a flood', (_, response) => pour(response)],
];

let home: string;
let engine: http.Server;
const nothing: RequestListener = (_, response) => response.end('{"result":{"text":""}}');
let answer: RequestListener;

beforeAll(async () => {
  home = mkdtempSync(path.join(os.tmpdir(), 'cc-input-'));
  mkdirSync(path.join(home, 'run'), { mode: 0o700 });
  engine = http.createServer((request, response) => answer(request.resume(), response));
  await new Promise<void>((resolve) => engine.listen(path.join(home, 'run', 'engine.sock'), resolve));
});

afterAll(async () => {
  engine.closeAllConnections();
  await new Promise((resolve) => engine.close(resolve));
  rmSync(home, { recursive: true });
});

it.each([
  ['the hooks end with 0 and say nothing in time', hooksKeepStill],
  ['the MCP server ends with 0 and speaks nothing but its protocol', mcpKeepsToItsProtocol],
])('malformed input of a hook or MCP server: %s', async (_, holds) => holds());

async function hooksKeepStill(): Promise<void> {
  const ended = async (hook: string, name: string, input: string | Buffer | null, how = {}): Promise<Ended> => {
    const startedAt = performance.now();
    const end = await piped(getScript(hook), input, how);
    const tookMs = performance.now() - startedAt;
    // The machine is measured only where the time was long.
    if (tookMs > LATE_MS) expect(tookMs, `${hook}, ${name}`).toBeLessThan(LATE_MS * busyness());
    return end;
  };
  const all = (name: string, input: string | Buffer | null, how = {}): Promise<Ended[]> =>
    Promise.all(HOOKS.map((hook) => ended(hook, name, input, how)));
  const still = HOOKS.map(() => ({ code: 0, stdout: '', stderr: '' }));
  answer = nothing;
  for (const [name, bytes] of MALFORMED) expect(await all(name, bytes), name).toEqual(still);
  for (const [name, given] of ANSWERS) {
    answer = given;
    expect(await all(name, told('UserPromptSubmit')), name).toEqual(still);
  }
  expect(await all('an input that never ends', null)).toEqual(still);
  answer = (_, response) => response.end(JSON.stringify({ result: { text: 'x'.repeat(1_000_000) } }));
  for (const end of await all('unread', told('Stop'), { reads: false }))
    expect(end).toMatchObject({ code: 0, stderr: '' });
}

async function mcpKeepsToItsProtocol(): Promise<void> {
  answer = nothing;
  const call = (id: number, name: string, given: unknown): string =>
    JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: given } });
  const ping = JSON.stringify({ jsonrpc: '2.0', id: 99, method: 'ping' });
  const odd = [
    ...MALFORMED.slice(0, -1).map(([, bytes]) => bytes),
    ...Array.from({ length: 60 }, (_, seed) => noise(seed, 1 + 40 * seed)),
    '{"jsonrpc":"2.0","id":{},"method":7}',
    call(9, 'remember', { text: 5 }),
    call(10, '__proto__', {}),
    call(11, 'retrieve_memory', { summary_query: 'x'.repeat(1_000_000) }),
    call(12, 'retrieve_memory', { summary_query: 'port', trigger_query: '\ud800', limit: 1e300 }),
    call(13, 'forget', { node_id: '../../etc/passwd' }),
    call(14, 'get_memory_index', []),
    '{"jsonrpc":"2.0","id":15,"method":"resources/read","params":{"uri":"memory://node/%00"}}',
  ];
  const lines = odd.flatMap((each) => [Buffer.from(each), Buffer.from('\n')]);
  const met = await piped([CLI, 'mcp'], Buffer.concat([...lines, Buffer.from(`${HELLO}\n${ping}\n{"half`)]));
  expect(met.code).toBe(0);
  const answers = met.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { jsonrpc: string; id: number });
  expect(answers.map(({ id }) => id)).toEqual(expect.arrayContaining([1, 9, 10, 11, 12, 13, 14, 15, 99]));

  for (const bytes of ['', HELLO, Buffer.alloc(12_000_000, 'x')]) {
    expect(await piped([CLI, 'mcp'], bytes)).toMatchObject({ code: 0, stdout: '' });
  }
  expect(await piped([CLI, 'mcp'], `${HELLO}\n${ping}\n`, { reads: false })).toMatchObject({ code: 0 });
}

const HELLO = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
});

const getScript = (hook: string): readonly string[] => [path.resolve('dist', 'hooks', `${hook}.js`)];

function pour(response: http.ServerResponse): void {
  const more = (): void => {
    while (!response.destroyed && response.write(Buffer.alloc(65_536, 'x')));
  };
  response.on('drain', more).on('error', () => {});
  more();
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program and its whole input, or one that never ends; `reads: false` closes its output before it says anything. */
function piped(args: readonly string[], input: string | Buffer | null, { reads = true } = {}): Promise<Ended> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, COMET_CC_HOME: home };
  const child = spawn(process.execPath, args, { env, cwd: home });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      said[name] += chunk;
    });
  }
  if (!reads) child.stdout.destroy();
  // It may have ended before it has read all.
  child.stdin.on('error', () => {});
  if (input !== null) child.stdin.end(input);
  const late = setTimeout(() => child.kill('SIGKILL'), HANGS_MS);
  return new Promise((resolve) => {
    child.once('close', (code) => {
      clearTimeout(late);
      resolve({ code, ...said });
    });
  });
}
