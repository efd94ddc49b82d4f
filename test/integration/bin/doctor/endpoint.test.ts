import { expect, test } from 'vitest';
import { checkEndpoint } from '../../../../bin/doctor/endpoint.ts';
import { Config } from '../../../../common/config.ts';
import { type ChatAnswer, chatServer, send } from '../../../helpers/chat-server.ts';

const KEY = 'sk-made-up-key-1234567890';

async function checked(answer: ChatAnswer, more: object = {}, env: NodeJS.ProcessEnv = { OWN_KEY: KEY }) {
  const server = await chatServer(answer);
  const { openai } = Config.parse({ openai: { baseUrl: server.baseUrl, keyEnv: 'OWN_KEY', model: 'qwen', ...more } });
  const check = await checkEndpoint(openai, env);
  await server.close();
  expect(JSON.stringify(check)).not.toContain(KEY);
  return { ...check, requests: server.requests };
}

const lists =
  (...ids: string[]): ChatAnswer =>
  (_, response) =>
    send(response, 200, { object: 'list', data: ids.map((id) => ({ id })) });

test('an endpoint that answers and has the model is in order; only its list was asked for', async () => {
  const check = await checked(lists('qwen:latest', 'other'));
  expect(check).toMatchObject({ id: 'endpoint', ok: true, detail: expect.stringContaining('has qwen') });
  expect(check.requests).toMatchObject([{ path: '/v1/models', authorization: `Bearer ${KEY}` }]);
});

test.each<[string, ChatAnswer, object, NodeJS.ProcessEnv | undefined, RegExp]>([
  ['a model that it does not have', lists('llama'), {}, undefined, /has no qwen; it has llama/],
  ['a refused key', (_, response) => send(response, 401, {}), {}, undefined, /refuses the key/],
  ['a variable that is not set', lists('qwen'), {}, {}, /OWN_KEY is not set/],
  ['a command without a key', lists('qwen'), { keyCommand: 'exit 2' }, undefined, /code 2/],
])('%s is told, with what to do', async (_, answer, more, env, detail) => {
  const check = await checked(answer, more, env);
  expect(check).toMatchObject({
    ok: false,
    detail: expect.stringMatching(detail),
    fix: expect.stringContaining('set '),
  });
});

test('an endpoint without a list is not blamed, one that is down is', async () => {
  expect(await checked((_, response) => send(response, 404, 'no such page'))).toMatchObject({ ok: true });
  const server = await chatServer(lists());
  await server.close();
  const { openai } = Config.parse({ openai: { baseUrl: server.baseUrl } });
  expect(await checkEndpoint(openai, {})).toMatchObject({ ok: false, detail: expect.stringContaining('ECONNREFUSED') });
});
