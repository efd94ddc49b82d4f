import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDirectEmbedder } from '../../../../memory/embeddings/encoder.ts';
import { openMiniLmEncoder } from '../../../../memory/embeddings/model-encoder.ts';
import { createWorkerEmbedder } from '../../../../memory/embeddings/worker-embedder.ts';
import { embedderContract } from '../../../contract/embedder.ts';
import { getCompiled } from '../../../helpers/compiled.ts';
import { installFakePackages } from '../../../helpers/model-packages.ts';

const script = getCompiled('memory/embeddings/embedder-worker');
let out: string;

beforeAll(async () => {
  out = await mkdtemp(path.join(os.tmpdir(), 'comet-worker-'));
  await installFakePackages(out);
});

afterAll(() => rm(out, { recursive: true, force: true }));

describe('the worker embedder', () => {
  embedderContract(async () => createWorkerEmbedder(out, script));

  test('gives the vectors of the embedder it runs', async () => {
    const embedder = createWorkerEmbedder(out, script);
    const texts = ['prefer pnpm over npm', '데이터베이스 port'];
    expect(await embedder.embed(texts)).toEqual(await createDirectEmbedder(await openMiniLmEncoder(out)).embed(texts));
    await embedder.close();
  });

  test('a close while texts are in work rejects them instead of hanging', async () => {
    const embedder = createWorkerEmbedder(out, script);
    const pending = embedder.embed(['x '.repeat(10_000)]);
    const outcome = expect(pending).rejects.toMatchObject({ code: 'index_failed' });
    await embedder.close();
    await outcome;
    await expect(embedder.embed(['late'])).rejects.toMatchObject({ code: 'index_failed' });
  });

  test('after a thread that crashed the next text starts a new one', async () => {
    const broken = path.join(out, 'broken.js');
    await writeFile(
      broken,
      "import { parentPort } from 'node:worker_threads';\nparentPort.once('message', () => { throw new Error('out of memory'); });\n",
    );
    const embedder = createWorkerEmbedder(out, broken);
    await expect(embedder.embed(['one'])).rejects.toMatchObject({ code: 'index_failed' });
    await expect(embedder.embed(['two'])).rejects.toMatchObject({ code: 'index_failed' });
    await embedder.close();
  });
});
