import path from 'node:path';
import { z } from 'zod';
import { importOptional } from './optional-package.ts';
import type { Encoder } from './query-encoder.ts';
import { toUnit } from './word-vectors.ts';

export const E5 = { id: 'multilingual-e5-small-384-q8-v1', dimensions: 384 } as const;
export const E5_PACKAGES = { '@huggingface/transformers': '3' } as const;

const MODEL = 'Xenova/multilingual-e5-small';
/** The model reads 512 pieces. */
const MAX_CHARS = 2_500;

const Output = z.looseObject({ dims: z.array(z.number()), data: z.instanceof(Float32Array) });
type Extract = (texts: readonly string[], options: object) => Promise<unknown>;

/**
 * multilingual-e5-small with transformers.js, from a package that the user installs below `dir`; its first start loads
 * the model from huggingface.co into `dir/cache`. It was trained with a word in front that tells questions from texts.
 *
 * @throws CometError `index_failed` where the package is missing
 */
export async function openE5Encoder(dir: string, install: string): Promise<Encoder> {
  const transformers = await importOptional(dir, '@huggingface/transformers', install);
  const settings = transformers['env'] as { cacheDir: string };
  settings.cacheDir = path.join(dir, 'cache');
  const open = transformers['pipeline'] as (task: string, model: string, options: object) => Promise<Extract>;
  const extract = await open('feature-extraction', MODEL, { dtype: 'q8' });

  async function vectors(kind: 'query' | 'passage', texts: readonly string[]): Promise<Float32Array[]> {
    const inputs = texts.map((text) => `${kind}: ${text.slice(0, MAX_CHARS)}`);
    const { data, dims } = Output.parse(await extract(inputs, { pooling: 'mean', normalize: true }));
    if (dims[0] !== texts.length || dims[1] !== E5.dimensions) {
      throw new Error(`${MODEL} gave ${dims.join(' x ')} numbers for ${texts.length} texts`);
    }
    return texts.map((text, at) =>
      /[\p{L}\p{N}]/u.test(text)
        ? toUnit(data.slice(at * E5.dimensions, (at + 1) * E5.dimensions))
        : new Float32Array(E5.dimensions),
    );
  }

  return {
    ...E5,
    documents: async (texts) =>
      (await vectors('passage', texts)).map((vector) => ({ vector, scriptVector: null, pieces: new Uint16Array(0) })),
    question: async (text) => ({ kind: 'uncentred', vector: (await vectors('query', [text]))[0] as Float32Array }),
  };
}
