import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { chatServer, send } from '../helpers/chat-server.ts';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { makeNode } from '../helpers/nodes.ts';

let home: TestHome;

beforeAll(async () => {
  home = await createHomeWithCerts();
});

afterAll(() => home.close());

async function restart(embedder: string): Promise<void> {
  await home.run(['stop', '--now']);
  await home.json(['start', '--json'], { env: { COMET_CC_EMBEDDER: embedder } });
}

async function best(query: string): Promise<string | undefined> {
  const [hit] = (await home.json(['memory', 'search', query, '--json'])) as { summary: string }[];
  return hit?.summary;
}

const indexes = async (): Promise<string[]> => await readdir(path.join(home.home, 'index'));
const status = async (): Promise<{ reindex: unknown; problems: unknown[] }> =>
  (await home.json(['status', '--json'])) as { reindex: unknown; problems: unknown[] };

it('memory is found by the table, which also stands for embedders that are gone', async () => {
  const nodes = ['the staging database listens on port 5433', 'deploy with make ship'].map((summary, at) =>
    makeNode({ node_id: `mem_20260301_11150${at}_00000a`, summary, turns: [], written_by: 'claude' }),
  );
  await writeFile(
    path.join(home.user, 'in.jsonl'),
    ['{"comet-cc-export":1}', ...nodes.map((node) => JSON.stringify({ node }))].join('\n'),
  );
  await home.json(['start', '--json'], { env: { COMET_CC_EMBEDDER: 'static' } });
  await home.json(['memory', 'import', 'in.jsonl', '--as', 'export', '--yes', '--json']);
  await home.run(['flush']);
  expect(await best('staging database port')).toContain('5433');
  for (const embedder of ['static', 'minilm']) {
    await restart(embedder);
    expect(await indexes()).toEqual([expect.stringMatching('^static-')]);
    expect(await status()).toMatchObject({ reindex: null, problems: [] });
  }
});

it('uses an endpoint, words only while that does not answer, and leaves one index after each change', async () => {
  const vectorOf = (text: string): number[] => [text.length, /port/.test(text) ? 100 : 0, 1];
  const server = await chatServer(({ body }, response) => {
    const { input } = body as unknown as { input: string | string[] };
    send(response, 200, { data: [input].flat().map((text, index) => ({ index, embedding: vectorOf(text) })) });
  });
  await writeFile(
    path.join(home.home, 'config.json'),
    JSON.stringify({ embedding: { baseUrl: server.baseUrl, model: 'small' } }),
  );
  await restart('endpoint');
  await expect.poll(() => indexes()).toEqual([expect.stringContaining('small')]);
  expect(await best('staging database port')).toContain('5433');
  expect(await status()).toMatchObject({ reindex: null, problems: [] });
  await server.close();
  await restart('endpoint');
  expect(await best('staging database port')).toContain('5433');
  expect(await indexes()).toEqual([expect.stringContaining('small')]);
  await restart('static');
  await expect.poll(() => indexes()).toEqual([expect.stringMatching('^static-')]);
  expect(await best('staging database port')).toContain('5433');
});
