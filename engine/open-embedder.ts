import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import type { Config } from '../common/config.ts';
import type { Log } from '../common/log.ts';
import type { HomePaths } from '../common/paths.ts';
import type { Embedder } from '../memory/embeddings/embedder.ts';
import type { EncoderChoice } from '../memory/embeddings/encoders.ts';
import type { Redactor } from '../redact/index.ts';

export interface EmbedderParts {
  readonly env: NodeJS.ProcessEnv;
  readonly config: Pick<Config, 'embedder' | 'embedding'>;
  readonly paths: HomePaths;
  readonly redactor: Redactor;
  readonly log: Log;
}

const Remembered = z.strictObject({ name: z.string(), dimensions: z.int().positive() });

/** The embedder that the settings name; while that one cannot work, the one that needs nothing. */
export async function openEmbedder(parts: EmbedderParts): Promise<Embedder> {
  const { config, paths, log } = parts;
  try {
    if (config.embedder === 'endpoint') return await endpoint(parts);
    return await threaded({ kind: config.embedder, dir: paths.modelsDir });
  } catch (error) {
    log.error('the embedder cannot work; static stands in until the next start', { embedder: config.embedder, error });
    return threaded({ kind: 'static', dir: paths.modelsDir });
  }
}

/**
 * The embedder that made the vectors of this id, where its packages are still there; else null. An endpoint of former settings is
 * not asked again.
 */
export async function embedderOf(
  id: string,
  paths: HomePaths,
  wrapped: (embedder: Embedder) => Embedder,
): Promise<Embedder | null> {
  const { ENCODER_FACTS } = await import('../memory/embeddings/encoders.ts');
  const kinds = Object.keys(ENCODER_FACTS) as EncoderChoice['kind'][];
  const kind = kinds.find((each) => ENCODER_FACTS[each].id === id);
  if (kind === undefined) return null;
  return await threaded({ kind, dir: paths.modelsDir }).then(wrapped, () => null);
}

/** @throws CometError `index_failed` where packages are missing */
async function threaded(encoder: EncoderChoice): Promise<Embedder> {
  const { missingPackages } = await import('../memory/embeddings/encoders.ts');
  const { createWorkerEmbedder } = await import('../memory/embeddings/worker-embedder.ts');
  const { CometError } = await import('../common/errors.ts');
  const { detail, install } = missingPackages(encoder);
  if (detail !== '') throw new CometError('index_failed', `${detail}: ${install}`);
  return createWorkerEmbedder({ encoder });
}

async function endpoint({ env, config, paths, redactor, log }: EmbedderParts): Promise<Embedder> {
  const { createEndpointEmbedder, endpointName, probeDimensions } = await import(
    '../memory/embeddings/endpoint-embedder.ts'
  );
  const options = { ...config.embedding, env, cwd: paths.home, redact: redactor.text };
  const name = endpointName(options);
  const file = path.join(paths.modelsDir, 'endpoint.json');
  try {
    const dimensions = await probeDimensions(options);
    await mkdir(paths.modelsDir, { recursive: true, mode: 0o700 });
    await writeFile(file, JSON.stringify({ name, dimensions }), { mode: 0o600 });
    return createEndpointEmbedder({ ...options, dimensions });
  } catch (error) {
    const known = await remembered(file);
    if (known?.name !== name) throw error;
    log.warn('the embedding endpoint does not answer; texts are found by their words until it does', { error });
    return createEndpointEmbedder({ ...options, dimensions: known.dimensions });
  }
}

async function remembered(file: string): Promise<z.infer<typeof Remembered> | null> {
  try {
    return Remembered.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    return null; // It never answered, or the file is of something else.
  }
}
