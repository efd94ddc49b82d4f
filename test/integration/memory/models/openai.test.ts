import { realpathSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import { Agent, type buildConnector, getGlobalDispatcher, setGlobalDispatcher } from 'undici';
import { afterEach, describe, expect, test } from 'vitest';
import { checkEndpoint } from '../../../../bin/doctor/endpoint.ts';
import { Config, loadConfig } from '../../../../common/config.ts';
import { createLog, silentLog } from '../../../../common/log.ts';
import { homePaths } from '../../../../common/paths.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import { createOpenAiEndpoint, type OpenAiEndpointOptions } from '../../../../memory/models/openai.ts';
import { createUsageCounter } from '../../../../memory/models/quota.ts';
import { openLanguageModel } from '../../../../memory/open-memory.ts';
import { createRedactor } from '../../../../redact/index.ts';
import { languageModelContract } from '../../../contract/language-model.ts';
import {
  answerFor,
  type ChatAnswer,
  type ChatServer,
  chatServer,
  completion,
  send,
} from '../../../helpers/chat-server.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { talk } from '../../../helpers/turns.ts';

const KEY = 'sk-made-up-key-1234567890';
const turn = readTurn(talk('The word is juniper.', 'fine'));
const sensing = { buffer: [], turn };
const compacting = { project: 'p', turns: [turn], knownTags: [], brief: '' };
const calm = new AbortController().signal;
const models = {
  sensor: 'small',
  summarizer: 'large',
  sensorTimeoutMs: 20_000,
  summarizerTimeoutMs: 20_000,
  detail: 'haiku',
  detailTimeoutMs: 20_000,
  bundle: 'haiku',
  bundleTimeoutMs: 20_000,
  maxChildren: 2,
};
const answers: ChatAnswer = (request, response) => send(response, 200, completion(answerFor(request)));

const servers: ChatServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

async function serve(answer: ChatAnswer): Promise<ChatServer> {
  const server = await chatServer(answer);
  servers.push(server);
  return server;
}

const logged: string[] = [];
function modelAt(baseUrl: string, options: Partial<OpenAiEndpointOptions> = {}) {
  return createOpenAiEndpoint({
    baseUrl,
    keyEnv: 'OWN_KEY',
    keyCommand: '',
    env: { OWN_KEY: KEY, PATH: process.env['PATH'] },
    models,
    contextTokens: 128_000,
    redact: (text) => text,
    now: () => Date.now(),
    log: createLog({
      level: 'debug',
      process: 'test',
      sink: (line) => void logged.push(line),
      redact: (line) => line,
      now: Date.now,
    }),
    ...options,
  });
}

const shared = await chatServer(answers);
languageModelContract('an OpenAI-compatible endpoint', () => modelAt(shared.baseUrl));
test('the contract’s server is closed', async () => {
  await shared.close();
  expect(shared.requests.every(({ path }) => path === '/v1/chat/completions')).toBe(true);
});

describe('a call of an endpoint', () => {
  test('carries the key in a header, the conversation as data, and asks for a schema', async () => {
    const server = await serve(answers);
    await modelAt(server.baseUrl).detectTopicShift(sensing, calm);
    const [request] = server.requests;
    expect(request).toMatchObject({ path: '/v1/chat/completions', authorization: `Bearer ${KEY}` });
    expect(request?.body).toMatchObject({ model: 'small', stream: false, response_format: { type: 'json_schema' } });
    expect(request?.body.messages[1]?.content).toContain('juniper');
    expect(JSON.stringify(request?.body)).not.toContain(KEY);
  });

  test.each([
    ['a fence', (text: string) => `\`\`\`json\n${text}\n\`\`\``],
    ['thoughts before it', (text: string) => `<think>is {this} it?</think>\n${text}`],
    ['words around it', (text: string) => `Here you are: ${text}\nAnything else?`],
    ['nothing', (text: string) => text],
  ])('reads an answer with %s', async (_, wrap) => {
    const server = await serve((request, response) =>
      send(response, 200, completion(wrap(JSON.stringify(answerFor(request))))),
    );
    expect(await modelAt(server.baseUrl).detectTopicShift(sensing, calm)).toMatchObject({
      logic_flow: 'BROKEN',
      load_level: 3,
    });
  });

  test('reads content in parts', async () => {
    const server = await serve((request, response) => {
      const parts = [{ type: 'text', text: JSON.stringify(answerFor(request)) }];
      send(response, 200, { choices: [{ message: { content: parts } }] });
    });
    expect(await modelAt(server.baseUrl).detectTopicShift(sensing, calm)).toMatchObject({ load_level: 3 });
  });

  test('is counted as the endpoint says, or as long as the prompt was', async () => {
    const server = await serve((request, response, nth) => {
      const said = { ...completion(answerFor(request)), ...(nth === 1 ? {} : { usage: 'none' }) };
      send(response, 200, said);
    });
    const ledger = createUsageCounter(() => 0);
    const model = modelAt(server.baseUrl, { ledger });
    await model.detectTopicShift(sensing, calm);
    expect(model.health()).toMatchObject({ callsToday: 1, tokensToday: 120 });
    await model.detectTopicShift(sensing, calm);
    expect(ledger.today().calls).toBe(2);
    expect(ledger.today().tokens).toBeGreaterThan(320);
  });

  test('falls back where the endpoint takes no schema, and remembers it', async () => {
    const server = await serve((request, response) => {
      const type = request.body.response_format?.type ?? 'none';
      if (type !== 'none') send(response, 400, { error: { message: `unknown response_format ${type}` } });
      else send(response, 200, completion(answerFor(request)));
    });
    const model = modelAt(server.baseUrl);
    await model.detectTopicShift(sensing, calm);
    await model.detectTopicShift(sensing, calm);
    const asked = server.requests.map(({ body }) => body.response_format?.type ?? 'none');
    expect(asked).toEqual(['json_schema', 'json_object', 'none', 'none']);
    expect(server.requests.at(-1)?.body.messages[0]?.content).toContain('"load_level"');
  });

  test('shows no more than the window of the model holds', async () => {
    const server = await serve(answers);
    const long = readTurn(talk('Describe it', 'word '.repeat(100_000)));
    await modelAt(server.baseUrl, { contextTokens: 16_000 }).summarize({ ...compacting, turns: [long] }, calm);
    const sent = JSON.stringify(server.requests[0]?.body);
    expect(sent.length).toBeLessThan(16_000 * 3);
    expect(sent).toContain('characters left out');
  });

  test('is repeated once when the answer does not fit, and no more', async () => {
    const once = await serve((request, response, nth) =>
      send(response, 200, completion(nth === 1 ? { odd: true } : answerFor(request))),
    );
    expect(await modelAt(once.baseUrl).detectTopicShift(sensing, calm)).toMatchObject({ load_level: 3 });
    expect(once.requests).toHaveLength(2);
    const never = await serve((_, response) => send(response, 200, completion({ odd: true })));
    const model = modelAt(never.baseUrl);
    await expect(model.detectTopicShift(sensing, calm)).rejects.toMatchObject({ code: 'model_failed' });
    expect(never.requests).toHaveLength(2);
    expect(model.health()).toMatchObject({
      callsToday: 2,
      tokensToday: 240,
      lastError: expect.stringMatching(/^failed: /),
    });
  });

  const long = 'x'.repeat(2_000_000);
  test.each<[string, ChatAnswer, string, number]>([
    ['a page in place of JSON', (_, response) => send(response, 200, '<html>nope</html>'), 'failed', 2],
    ['an empty answer', (_, response) => send(response, 200, completion('')), 'failed', 2],
    ['a refusal', (_, response) => send(response, 200, { choices: [{ message: { refusal: 'no' } }] }), 'failed', 2],
    ['half an answer', (_, response) => send(response, 200, '{"choices": [{"mess'), 'failed', 2],
    ['a broken connection', (_, response) => void response.socket?.destroy(), 'failed', 2],
    ['a wrong key', (_, response) => send(response, 401, { error: { message: 'bad key' } }), 'not_logged_in', 1],
    ['another address', (_, response) => send(response, 302, '', { location: 'http://127.0.0.1:9/' }), 'failed', 2],
    ['a huge answer', (_, response) => send(response, 200, completion(long)), 'flooded', 2],
  ])('that ends with %s fails and is named', async (_, answer, kind, calls) => {
    const server = await serve(answer);
    const model = modelAt(server.baseUrl);
    await expect(model.detectTopicShift(sensing, calm)).rejects.toMatchObject({ code: 'model_failed' });
    expect(model.health().lastError.split(': ')[0]).toBe(kind);
    expect(server.requests).toHaveLength(calls);
  });

  test('that is one too many is not repeated until the pause is over', async () => {
    let nowMs = 1_800_000_000_000;
    const server = await serve((request, response, nth) =>
      nth === 1 ? send(response, 429, {}, { 'retry-after': '20' }) : answers(request, response, nth),
    );
    const model = modelAt(server.baseUrl, { now: () => nowMs });
    await expect(model.detectTopicShift(sensing, calm)).rejects.toThrow(/rate_limited/);
    await expect(model.detectTopicShift(sensing, calm)).rejects.toThrow(/another 20 s/);
    expect(server.requests).toHaveLength(1);
    nowMs += 20_001;
    expect(await model.detectTopicShift(sensing, calm)).toMatchObject({ load_level: 3 });
  });

  test('asks the bundle model for the detail of tool calls', async () => {
    const server = await serve(answers);
    const model = modelAt(server.baseUrl, { models: { ...models, detail: 'middle', bundle: 'tiny' } });
    await model.expand({ summary: 's', turns: [turn] }, calm);
    await model.expand({ summary: 's', turns: [turn], isBundle: true }, calm);
    expect(server.requests.map(({ body }) => body.model)).toEqual(['middle', 'tiny']);
  });

  test('that hangs, before or within the answer, ends at its timeout', async () => {
    for (const hang of [() => {}, (_: unknown, response: { write(text: string): void }) => response.write('{"cho')]) {
      const server = await serve(hang as ChatAnswer);
      const model = modelAt(server.baseUrl, { models: { ...models, sensorTimeoutMs: 300 } });
      await expect(model.detectTopicShift(sensing, calm)).rejects.toMatchObject({ code: 'model_timeout' });
      expect(model.health().tokensToday).toBeGreaterThan(100);
    }
  });

  test('ends when the caller gives up, and when the model is closed', async () => {
    const server = await serve(() => {});
    const model = modelAt(server.baseUrl);
    const giveUp = new AbortController();
    const first = model.detectTopicShift(sensing, giveUp.signal);
    const second = model.summarize(compacting, calm);
    const ended = Promise.allSettled([first, second]);
    giveUp.abort(new Error('late'));
    await expect(first).rejects.toThrow('late');
    await model.close();
    expect((await ended).map((each) => each.status)).toEqual(['rejected', 'rejected']);
  });

  test('reports an endpoint that does not listen with a next step, and counts no call', async () => {
    const server = await chatServer(answers);
    await server.close();
    const model = modelAt(server.baseUrl);
    await expect(model.detectTopicShift(sensing, calm)).rejects.toMatchObject({ code: 'model_missing' });
    expect(model.health()).toMatchObject({ callsToday: 0 });
    expect(model.health().lastError).toMatch(/ECONNREFUSED.*openai\.baseUrl/);
  });
});

describe('the key of an endpoint', () => {
  test('comes from a command, which is asked once, and again after a refusal', async () => {
    const server = await serve((request, response, nth) =>
      nth === 2 ? send(response, 401, {}) : answers(request, response, nth),
    );
    const model = modelAt(server.baseUrl, { keyCommand: `printf '%s\\n' "$PREFIX-$$"`, env: { PREFIX: 'printed' } });
    await model.detectTopicShift(sensing, calm);
    await expect(model.detectTopicShift(sensing, calm)).rejects.toThrow(/not_logged_in/);
    await model.detectTopicShift(sensing, calm);
    const [first, second, third] = server.requests.map(({ authorization }) => authorization);
    expect(first).toMatch(/^Bearer printed-\d+$/);
    expect(second).toBe(first);
    expect(third).not.toBe(first);
  });

  test('comes from a command that runs in the home of the user, as that of doctor does', async () => {
    const server = await serve(answers);
    await modelAt(server.baseUrl, { keyCommand: 'pwd -P' }).detectTopicShift(sensing, calm);
    await checkEndpoint(Config.parse({ openai: { baseUrl: server.baseUrl, keyCommand: 'pwd -P' } }).openai, {});
    const keys = server.requests.map(({ authorization }) => authorization);
    expect(keys).toEqual([1, 2].map(() => `Bearer ${realpathSync(os.homedir())}`));
  });

  test.each([
    ['that fails', 'echo secret-of-mine; echo secret-of-mine >&2; exit 3', /code 3/],
    ['that prints a page', 'echo secret-of-mine; echo and more', /more than a key/],
    ['that prints nothing', 'true', /no key/],
  ])('is not taken from a command %s, and nothing it printed is told', async (_, keyCommand, why) => {
    const server = await serve(answers);
    const model = modelAt(server.baseUrl, { keyCommand });
    await expect(model.detectTopicShift(sensing, calm)).rejects.toThrow(why);
    expect(server.requests).toHaveLength(0);
    expect(`${model.health().lastError}${logged.join('')}`).not.toContain('secret-of-mine');
  });

  test('is missing where its variable is, and nothing is sent without it', async () => {
    const server = await serve(answers);
    const model = modelAt(server.baseUrl, { env: {} });
    await expect(model.detectTopicShift(sensing, calm)).rejects.toThrow(/OWN_KEY is not set/);
    expect(server.requests).toHaveLength(0);
  });

  test('of OpenAI is sent to no other endpoint', async () => {
    const server = await serve(answers);
    await modelAt(server.baseUrl, { keyEnv: '', env: { OPENAI_API_KEY: KEY } }).detectTopicShift(sensing, calm);
    expect(server.requests[0]?.authorization).toBe('');
  });

  test('appears in no error, status or log, although the endpoint repeats it', async () => {
    const server = await serve((_, response) => send(response, 403, { error: { message: `key ${KEY} is no good` } }));
    const model = modelAt(server.baseUrl);
    const error = await model.detectTopicShift(sensing, calm).catch((each: unknown) => each as Error);
    expect((error as Error).message).toContain('key [key] is no good');
    expect(`${JSON.stringify(error)}${model.health().lastError}${logged.join('')}`).not.toContain(KEY);
  });
});

describe('the preset of a provider', () => {
  const ANTHROPIC = 'https://api.anthropic.com';
  const OPENAI = 'https://api.openai.com';
  const GOOGLE = 'https://generativelanguage.googleapis.com';
  const keys = {
    ANTHROPIC_API_KEY: 'made-up-anthropic',
    OPENAI_API_KEY: 'made-up-openai',
    GEMINI_API_KEY: 'made-up-google',
  };
  const tempDir = tempDirs();
  const outside = getGlobalDispatcher();
  afterEach(() => setGlobalDispatcher(outside));

  test.each([
    [{ PROVIDER: 'anthropic' }, ANTHROPIC, '/v1/', 'claude-sonnet-5', 'Bearer made-up-anthropic'],
    [{ MODEL: 'sonnet' }, ANTHROPIC, '/v1/', 'claude-sonnet-5', 'Bearer made-up-anthropic'],
    [{ MODEL: 'opus' }, ANTHROPIC, '/v1/', 'claude-opus-5', 'Bearer made-up-anthropic'],
    [{ MODEL: 'haiku' }, ANTHROPIC, '/v1/', 'claude-haiku-4-5', 'Bearer made-up-anthropic'],
    [{}, OPENAI, '/v1/', 'gpt-5', 'Bearer made-up-openai'],
    [{ PROVIDER: 'openai' }, OPENAI, '/v1/', 'gpt-5', 'Bearer made-up-openai'],
    [{ MODEL: 'mini' }, OPENAI, '/v1/', 'gpt-5-mini', 'Bearer made-up-openai'],
    [{ MODEL: 'codex' }, OPENAI, '/v1/', 'gpt-5-codex', 'Bearer made-up-openai'],
    [{ MODEL: 'openai/o5' }, OPENAI, '/v1/', 'o5', 'Bearer made-up-openai'],
    [{ PROVIDER: 'google' }, GOOGLE, '/v1beta/openai/', 'gemini-2.5-flash', 'Bearer made-up-google'],
    [{ MODEL: 'flash' }, GOOGLE, '/v1beta/openai/', 'gemini-2.5-flash', 'Bearer made-up-google'],
    [{ MODEL: 'pro' }, GOOGLE, '/v1beta/openai/', 'gemini-2.5-pro', 'Bearer made-up-google'],
    [{ PROVIDER: 'ollama' }, 'http://127.0.0.1:11434', '/v1/', 'llama3.1', ''],
    [{ MODEL: 'ollama/qwen3' }, 'http://127.0.0.1:11434', '/v1/', 'qwen3', ''],
    [{ MODEL: 'vllm/Qwen/Qwen3-8B' }, 'http://127.0.0.1:8000', '/v1/', 'Qwen/Qwen3-8B', ''],
  ])('%j asks its endpoint for the model with its key', async (given, origin, path, name, authorization) => {
    const server = await serve(answers);
    const origins: string[] = [];
    const connect: buildConnector.connector = ({ protocol, hostname, port }, callback) => {
      origins.push(`${protocol}//${hostname}${port ? `:${port}` : ''}`);
      const socket = net.connect(Number(new URL(server.baseUrl).port), '127.0.0.1', () => callback(null, socket));
    };
    setGlobalDispatcher(new Agent({ connect }));
    const home = await tempDir();
    const variables = Object.entries(given).map(([key, value]) => [`COMET_CC_OPENAI_${key}`, value]);
    const env = { ...keys, COMET_CC_HOME: home, COMET_CC_LLM: 'openai', ...Object.fromEntries(variables) };
    const model = await openLanguageModel({
      env,
      config: loadConfig(env).config,
      paths: homePaths(home),
      redactor: createRedactor({ markKey: Buffer.alloc(32, 7) }),
      usage: createUsageCounter(Date.now),
      claudeEnvironment: { env: {}, bundleFile: '', userCa: '', userProxy: {} },
      log: silentLog,
    });
    expect((await model?.summarize(compacting, calm))?.nodes).toHaveLength(1);
    await model?.detectTopicShift(sensing, calm);
    await model?.close();
    expect(new Set(origins)).toEqual(new Set([origin]));
    const asked = server.requests.map((request) => [request.path, request.body.model, request.authorization]);
    expect(asked).toEqual(Array(2).fill([`${path}chat/completions`, name, authorization]));
  });
});

describe('the address of an endpoint', () => {
  const parsed = (baseUrl: string) => Config.safeParse({ openai: { baseUrl } }).success;

  test.each([
    'https://api.openai.com/v1',
    'http://127.0.0.1:11434/v1',
    'http://localhost:8000/v1',
    'http://[::1]:1/v1',
  ])('may be %s', (url) => expect(parsed(url)).toBe(true));

  test.each([
    'http://llm.example/v1',
    'https://user:word@llm.example/v1',
    'https://llm.example/v1?key=x',
    'ftp://llm.example',
    'llm.example',
  ])('may not be %s', (url) => expect(parsed(url)).toBe(false));
});
