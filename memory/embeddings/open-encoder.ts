import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { z } from 'zod';
import { CometError } from '../../common/errors.ts';
import { type Encoder, toUnit } from './encoder.ts';
import { MINILM, MINILM_PACKAGES, openMiniLmEncoder } from './model-encoder.ts';
import { createStaticEncoder, STATIC } from './static-encoder.ts';

export const E5 = { id: 'multilingual-e5-small-384-q8-v1', dimensions: 384 } as const;
const E5_PACKAGES = { '@huggingface/transformers': '3' } as const;

/** The encoder that a worker thread runs; plain data, since it is posted to the thread. */
export interface EncoderChoice {
  readonly kind: 'static' | 'minilm' | 'e5';
  /** Where the user installed the packages of the others. */
  readonly dir: string;
}

export interface EncoderFacts {
  readonly id: string;
  readonly dimensions: number;
  /** Documents per request to the thread; a query waits for one request at most. */
  readonly atOnce: number;
  /** Packages the user must install, with versions. */
  readonly packages: Readonly<Record<string, string>>;
  /** What a cosine counts in ranking, as a multiple of one of the table. Source: `npm run bench:real -- --models DIR`. */
  readonly meaning: number;
}

/** Known without loading the encoder. */
export const ENCODER_FACTS: Readonly<Record<EncoderChoice['kind'], EncoderFacts>> = {
  static: { ...STATIC, atOnce: 32, packages: {}, meaning: 1 },
  minilm: { ...MINILM, atOnce: 1, packages: MINILM_PACKAGES, meaning: 3 },
  e5: { ...E5, atOnce: 1, packages: E5_PACKAGES, meaning: 1 },
};

function installCommand({ kind, dir }: EncoderChoice): string {
  const names = Object.entries(ENCODER_FACTS[kind].packages).map(([name, version]) => `${name}@${version}`);
  return names.length === 0 ? '' : `npm install --prefix "${dir}" ${names.join(' ')}`;
}

/** @throws CometError `index_failed` */
export async function openEncoder(choice: EncoderChoice): Promise<Encoder> {
  if (choice.kind === 'static') return createStaticEncoder();
  const open = choice.kind === 'minilm' ? openMiniLmEncoder : openE5Encoder;
  return open(choice.dir, installCommand(choice));
}

/** Packages of an encoder that are missing or have another version ('' for none), and the command that installs them. */
export function missingPackages(choice: EncoderChoice): { readonly detail: string; readonly install: string } {
  const wanted = Object.entries(ENCODER_FACTS[choice.kind].packages);
  const missing = wanted.filter(
    ([name, version]) => !`${installedVersion(choice.dir, name)}.`.startsWith(`${version}.`),
  );
  const names = missing.map(([name, version]) => `${name} ${version}`);
  const detail = missing.length === 0 ? '' : `the embedder ${choice.kind} needs ${names.join(' and ')}`;
  return { detail, install: installCommand(choice) };
}

const MODEL = 'Xenova/multilingual-e5-small';
/** The model reads 512 tokens. */
const MAX_CHARS = 2_500;

const Output = z.looseObject({ dims: z.array(z.number()), data: z.instanceof(Float32Array) });
type Extract = (texts: readonly string[], options: object) => Promise<unknown>;

/**
 * multilingual-e5-small on transformers.js, a package that the user installs below `dir`. The first start downloads the
 * model from huggingface.co into `dir/cache`. The model expects the prefix `query:` or `passage:`.
 *
 * @throws CometError `index_failed` where the package is missing
 */
export async function openE5Encoder(dir: string, install: string): Promise<Encoder> {
  const transformers = requireOptional(dir, '@huggingface/transformers', install);
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
    query: async (text) => ({ kind: 'uncentered', vector: (await vectors('query', [text]))[0] as Float32Array }),
  };
}

/** Loads a package from `dir/node_modules`. @throws CometError `index_failed`, naming the command that installs it */
function requireOptional(dir: string, name: string, install: string): Record<string, unknown> {
  try {
    return createRequire(path.join(dir, 'package.json'))(name) as Record<string, unknown>;
  } catch (cause) {
    throw new CometError('index_failed', `the embedder needs the package ${name}: ${install}`, { cause });
  }
}

/** '' if the package is not installed. */
function installedVersion(dir: string, name: string): string {
  try {
    const file = path.join(dir, 'node_modules', ...name.split('/'), 'package.json');
    return (JSON.parse(readFileSync(file, 'utf8')) as { version?: string }).version ?? '';
  } catch {
    return '';
  }
}
