import { expect, test } from 'vitest';
import { checkEmbedder } from '../../../../bin/doctor/endpoint.ts';
import { Config } from '../../../../common/config.ts';
import { chatServer, send } from '../../../helpers/chat-server.ts';

test('the static table needs nothing', async () => {
  const check = await checkEmbedder(Config.parse({}), {});
  expect(check).toMatchObject({ id: 'embedder', ok: true, detail: 'static' });
});

test('an endpoint is asked for one vector', async () => {
  const server = await chatServer((_, response) => send(response, 200, { data: [{ embedding: [1, 0, 0] }] }));
  const config = Config.parse({ embedder: 'endpoint', embedding: { baseUrl: server.baseUrl, model: 'small' } });
  const check = await checkEmbedder(config, {});
  expect(check).toMatchObject({ ok: true, detail: expect.stringContaining('small at 127.0.0.1') });
  await server.close();
  const { ok, detail, fix } = await checkEmbedder(config, {});
  expect([ok, fix]).toEqual([false, expect.stringContaining('embedding.baseUrl')]);
  expect(detail).toContain('ECONNREFUSED');
});
