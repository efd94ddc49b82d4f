import type http from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { createEndpointEmbedder, probeDimensions } from '../../../../memory/embeddings/endpoint-embedder.ts';
import { hashVector } from '../../../../memory/embeddings/static-embedder.ts';
import type { ModelEndpointOptions } from '../../../../memory/models/endpoint-request.ts';
import { embedderContract } from '../../../contract/embedder.ts';
import { type ChatServer, chatServer, send } from '../../../helpers/chat-server.ts';

const DIMENSIONS = 64;
const servers: ChatServer[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

type Answer = (texts: readonly string[], response: http.ServerResponse, nth: number) => void;

const openAiAnswer: Answer = (texts, response) => {
  const data = texts.map((text, index) => ({
    object: 'embedding',
    index,
    embedding: [...hashVector(text, DIMENSIONS)],
  }));
  send(response, 200, { object: 'list', data: data.toReversed(), model: 'm', usage: { total_tokens: 1 } });
};

async function serve(answer: Answer = openAiAnswer): Promise<ChatServer> {
  const server = await chatServer(({ body }, response, nth) => {
    answer((body as unknown as { input: string[] }).input, response, nth);
  });
  servers.push(server);
  return server;
}

function optionsFor(baseUrl: string, more: Partial<ModelEndpointOptions> = {}): ModelEndpointOptions {
  const base = { baseUrl, keyEnv: '', keyCommand: '', env: {}, model: 'm', timeoutMs: 60_000 };
  return { ...base, redact: (text) => text.replaceAll('hunter2', '[redacted]'), ...more };
}

const inputs = (server: ChatServer): string[][] =>
  server.requests.map(({ body }) => (body as unknown as { input: string[] }).input);

describe('an embedding endpoint', () => {
  embedderContract(async () => {
    const { baseUrl } = await serve();
    return createEndpointEmbedder({ ...optionsFor(baseUrl), dimensions: DIMENSIONS });
  });

  test("says how many numbers its vectors have, in OpenAI's shape and in Ollama's", async () => {
    const openAi = await serve();
    expect(await probeDimensions(optionsFor(openAi.baseUrl))).toBe(DIMENSIONS);
    expect(openAi.requests[0]?.path).toBe('/v1/embeddings');
    const ollama = await serve((texts, response) => send(response, 200, { embeddings: texts.map(() => [3, 4, 0]) }));
    const options = optionsFor(ollama.baseUrl.replace('/v1', '/api/'));
    expect(await probeDimensions(options)).toBe(3);
    expect(ollama.requests[0]?.path).toBe('/api/embed');
    const embedder = createEndpointEmbedder({ ...options, dimensions: 3 });
    const [embedding] = await embedder.embed(['one']);
    expect([...(embedding?.vector ?? [])]).toEqual([expect.closeTo(0.6), expect.closeTo(0.8), 0]);
  });

  test('is sent texts in batches, redacted and cut, with its key', async () => {
    const server = await serve();
    const options = optionsFor(server.baseUrl, { keyEnv: 'VECTOR_KEY', env: { VECTOR_KEY: 'k-123' } });
    const embedder = createEndpointEmbedder({ ...options, dimensions: DIMENSIONS });
    await embedder.embed(['the password is hunter2', ...Array.from({ length: 20 }, () => 'word '.repeat(5_000))]);
    expect(inputs(server).map(({ length }) => length)).toEqual([16, 5]);
    expect(inputs(server)[0]?.[0]).toBe('the password is [redacted]');
    expect(inputs(server)[1]?.[0]?.length).toBe(6_000);
    expect(new Set(server.requests.map(({ authorization }) => authorization))).toEqual(new Set(['Bearer k-123']));
  });

  test.each<[string, Answer, string]>([
    ['refuses', (_, response) => send(response, 500, { error: 'k-123 is out' }), 'returned status 500: [key] is out'],
    ['answers a page', (_, response) => send(response, 200, '<html>'), 'did not return vectors'],
    ['answers too few', (_, response) => send(response, 200, { embeddings: [[1]] }), '1 vectors for 2 texts'],
    [
      'changes its vectors',
      (texts, response) => send(response, 200, { embeddings: texts.map(() => [1]) }),
      'instead of 64',
    ],
    ['breaks off', (_, response) => response.destroy(), 'cannot be reached'],
    ['never answers', () => {}, 'did not answer (timeout)'],
  ])('that %s is named with its reason, and without its key', async (_, answer, reason) => {
    const { baseUrl } = await serve(answer);
    const timeoutMs = reason.includes('timeout') ? 300 : 60_000;
    const options = optionsFor(baseUrl, { keyEnv: 'K', env: { K: 'k-123' }, timeoutMs });
    const embedder = createEndpointEmbedder({ ...options, dimensions: DIMENSIONS });
    const error = await embedder.embed(['one', 'two']).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'index_failed', message: expect.stringContaining(reason) });
    expect(JSON.stringify([error, (error as Error).message])).not.toContain('k-123');
  });

  test('a key that is missing is named by its variable, and nothing is sent', async () => {
    const server = await serve();
    const embedder = createEndpointEmbedder({
      ...optionsFor(server.baseUrl, { keyEnv: 'NOT_THERE' }),
      dimensions: DIMENSIONS,
    });
    await expect(embedder.embed(['one'])).rejects.toThrow('NOT_THERE');
    expect(server.requests).toEqual([]);
  });

  test('a refused key is asked for again', async () => {
    const server = await serve((texts, response, nth) =>
      nth === 1 ? send(response, 401, {}) : openAiAnswer(texts, response, nth),
    );
    const env: Record<string, string> = { K: 'old' };
    const embedder = createEndpointEmbedder({
      ...optionsFor(server.baseUrl, { keyEnv: 'K', env }),
      dimensions: DIMENSIONS,
    });
    await expect(embedder.embed(['one'])).rejects.toThrow('status 401');
    env['K'] = 'new';
    await embedder.embed(['one']);
    expect(server.requests.map(({ authorization }) => authorization)).toEqual(['Bearer old', 'Bearer new']);
  });

  test('a close ends what is under way', async () => {
    let arrived: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const { baseUrl } = await serve(() => arrived());
    const embedder = createEndpointEmbedder({ ...optionsFor(baseUrl), dimensions: DIMENSIONS });
    const pending = embedder.embed(['one']);
    await asked;
    await embedder.close();
    await expect(pending).rejects.toMatchObject({ code: 'index_failed' });
    await expect(embedder.embed(['late'])).rejects.toMatchObject({ code: 'index_failed' });
  });
});
