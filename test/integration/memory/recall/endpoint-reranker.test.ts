import type http from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import type { ModelEndpointOptions } from '../../../../memory/models/endpoint-request.ts';
import { createEndpointReranker } from '../../../../memory/recall/endpoint-reranker.ts';
import { rerankerContract } from '../../../contract/reranker.ts';
import { type ChatServer, chatServer, send } from '../../../helpers/chat-server.ts';
import { createWordReranker, sharedWords } from '../../../helpers/word-reranker.ts';

interface Asked {
  readonly model: string;
  readonly query: string;
  readonly documents: readonly string[];
  readonly top_n: number;
}

const servers: ChatServer[] = [];
const live = (): AbortSignal => new AbortController().signal;

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

type Answer = (asked: Asked, response: http.ServerResponse, nth: number) => void;

const bestFirst: Answer = ({ query, documents }, response) => {
  const results = documents.map((text, index) => ({ index, relevance_score: sharedWords(query, text) }));
  send(response, 200, { id: '1', results: results.sort((one, other) => other.relevance_score - one.relevance_score) });
};

async function serve(answer: Answer = bestFirst): Promise<ChatServer> {
  const server = await chatServer(({ body }, response, nth) => answer(body as unknown as Asked, response, nth));
  servers.push(server);
  return server;
}

function optionsFor(baseUrl: string, more: Partial<ModelEndpointOptions> = {}): ModelEndpointOptions {
  const base = { baseUrl, keyEnv: '', keyCommand: '', env: {}, cwd: '/', model: 'm', timeoutMs: 60_000 };
  return { ...base, redact: (text) => text.replaceAll('hunter2', '[redacted]'), ...more };
}

describe('a reranking endpoint', () => {
  rerankerContract(async () => createEndpointReranker(optionsFor((await serve()).baseUrl)));

  test('is sent question and texts redacted, with its key, in one request', async () => {
    const server = await serve();
    const options = optionsFor(server.baseUrl, { keyEnv: 'K', env: { K: 'k-123' } });
    await createEndpointReranker(options).score('is it hunter2?', ['it is hunter2', 'it is not'], live());
    expect(server.requests).toMatchObject([{ path: '/v1/rerank', authorization: 'Bearer k-123' }]);
    expect(server.requests[0]?.body).toEqual({
      model: 'm',
      query: 'is it [redacted]?',
      documents: ['it is [redacted]', 'it is not'],
      top_n: 2,
    });
  });

  test('what it leaves out is worth least', async () => {
    const { baseUrl } = await serve((_, response) =>
      send(response, 200, { results: [{ index: 1, relevance_score: -3 }] }),
    );
    const scores = await createEndpointReranker(optionsFor(baseUrl)).score('q', ['a', 'b'], live());
    expect(scores).toEqual([Number.NEGATIVE_INFINITY, -3]);
  });

  test.each<[string, Answer, string]>([
    ['refuses', (_, response) => send(response, 500, { error: 'k-123 is out' }), 'returned status 500: [key] is out'],
    ['answers a page', (_, response) => send(response, 200, '<html>'), 'did not return scores'],
    [
      'scores what it was not given',
      (_, response) => send(response, 200, { results: [{ index: 7, relevance_score: 1 }] }),
      'did not return scores',
    ],
    ['breaks off', (_, response) => response.destroy(), 'cannot be reached'],
    ['never answers', () => {}, 'did not answer (timeout)'],
  ])('that %s is named with its reason, and without its key', async (_, answer, reason) => {
    const { baseUrl } = await serve(answer);
    const timeoutMs = reason.includes('timeout') ? 300 : 60_000;
    const options = optionsFor(baseUrl, { keyEnv: 'K', env: { K: 'k-123' }, timeoutMs });
    const error = await createEndpointReranker(options)
      .score('q', ['a', 'b'], live())
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'model_failed', message: expect.stringContaining(reason) });
    expect(JSON.stringify([error, (error as Error).message])).not.toContain('k-123');
  });

  test('a key that is missing is named by its variable, and nothing is sent', async () => {
    const server = await serve();
    const reranker = createEndpointReranker(optionsFor(server.baseUrl, { keyEnv: 'NOT_THERE' }));
    await expect(reranker.score('q', ['a', 'b'], live())).rejects.toThrow('NOT_THERE');
    expect(server.requests).toEqual([]);
  });
});

describe('a reranker that counts words', () => {
  rerankerContract(async () => createWordReranker());
});
