import { expect, test } from 'vitest';
import { checkEmbedder } from '../../../../bin/doctor/embedder.ts';
import { Config } from '../../../../common/config.ts';
import { homePaths } from '../../../../common/paths.ts';
import { chatServer, send } from '../../../helpers/chat-server.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();

test('the static table needs nothing', async () => {
  const check = await checkEmbedder(Config.parse({}), homePaths(await tempDir()), {});
  expect(check).toMatchObject({ id: 'embedder', ok: true, detail: 'static' });
});

test('an endpoint is asked for one vector', async () => {
  const server = await chatServer((_, response) => send(response, 200, { data: [{ embedding: [1, 0, 0] }] }));
  const config = Config.parse({ embedder: 'endpoint', embedding: { baseUrl: server.baseUrl, model: 'small' } });
  const paths = homePaths(await tempDir());
  const check = await checkEmbedder(config, paths, {});
  expect(check).toMatchObject({ ok: true, detail: expect.stringContaining('small at 127.0.0.1') });
  await server.close();
  const { ok, detail, fix } = await checkEmbedder(config, paths, {});
  expect([ok, fix]).toEqual([false, expect.stringContaining('embedding.baseUrl')]);
  expect(detail).toContain('ECONNREFUSED');
});
