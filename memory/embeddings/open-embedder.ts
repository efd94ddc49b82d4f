import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import type { Config } from '../../common/config.ts';
import { CometError, getReason, type Problem } from '../../common/errors.ts';
import type { Log } from '../../common/log.ts';
import type { HomePaths } from '../../common/paths.ts';
import { parseJson } from '../../common/text.ts';
import type { Redactor } from '../../redact/index.ts';
import type { Embedder } from './embedder.ts';
import type { EncoderChoice } from './open-encoder.ts';

export interface EmbedderParts {
  readonly env: NodeJS.ProcessEnv;
  readonly config: Pick<Config, 'embedder' | 'embedding'>;
  readonly paths: HomePaths;
  readonly redactor: Redactor;
  readonly log: Log;
  /** Of a problem that lasts until the next start. */
  readonly report: (problem: Problem) => void;
}

const Remembered = z.strictObject({ name: z.string(), dimensions: z.int().positive() }).nullable().catch(null);

/** The configured embedder, or the static one where that one does not open. */
export async function openEmbedder(parts: EmbedderParts): Promise<Embedder> {
  const { config, paths, report } = parts;
  try {
    if (config.embedder === 'endpoint') return await openEndpoint(parts);
    return await openLocal({ kind: config.embedder, dir: paths.modelsDir });
  } catch (error) {
    report({ file: 'embedder', message: `${getReason(error)}; static replaces it until the next start` });
    return openLocal({ kind: 'static', dir: paths.modelsDir });
  }
}

/** The embedder of these vectors, or null where its packages are missing. A former endpoint is not used again. */
export async function getEmbedder(
  id: string,
  paths: HomePaths,
  wrap: (embedder: Embedder) => Embedder,
): Promise<Embedder | null> {
  const { ENCODER_FACTS } = await import('./open-encoder.ts');
  const kinds = Object.keys(ENCODER_FACTS) as EncoderChoice['kind'][];
  const kind = kinds.find((each) => ENCODER_FACTS[each].id === id);
  if (kind === undefined) return null;
  return await openLocal({ kind, dir: paths.modelsDir }).then(wrap, () => null);
}

/** The rules of recall with the weight that vectors of this embedder have; the same object where that is the standard. */
export async function weighFor(id: string, recall: Config['recall']): Promise<Config['recall']> {
  const { ENCODER_FACTS } = await import('./open-encoder.ts');
  const { meaning = 1 } = Object.values(ENCODER_FACTS).find((facts) => facts.id === id) ?? {};
  if (meaning === 1) return recall;
  return { ...recall, weights: { ...recall.weights, meaning: recall.weights.meaning * meaning } };
}

/** @throws CometError `index_failed` where packages are missing */
async function openLocal(encoder: EncoderChoice): Promise<Embedder> {
  if (encoder.kind === 'static') {
    // A thread of its own would take 30 MB, and the table takes microseconds for a word.
    const { createDirectEmbedder } = await import('./encoder.ts');
    const { createStaticEncoder } = await import('./static-encoder.ts');
    return createDirectEmbedder(createStaticEncoder());
  }
  const { missingPackages } = await import('./open-encoder.ts');
  const { createWorkerEmbedder } = await import('./worker-embedder.ts');
  const { detail, install } = missingPackages(encoder);
  if (detail !== '') throw new CometError('index_failed', `${detail}: ${install}`);
  return createWorkerEmbedder(encoder);
}

async function openEndpoint({ env, config, paths, redactor, log }: EmbedderParts): Promise<Embedder> {
  const { createEndpointEmbedder, endpointName, probeDimensions } = await import('./endpoint-embedder.ts');
  const options = { ...config.embedding, env, cwd: paths.home, redact: redactor.text };
  const name = endpointName(options);
  const file = path.join(paths.modelsDir, 'endpoint.json');
  try {
    const dimensions = await probeDimensions(options);
    await mkdir(paths.modelsDir, { recursive: true, mode: 0o700 });
    await writeFile(file, JSON.stringify({ name, dimensions }), { mode: 0o600 });
    return createEndpointEmbedder({ ...options, dimensions });
  } catch (error) {
    // Null: it never answered, or the file is damaged.
    const remembered = Remembered.parse(parseJson(await readFile(file, 'utf8').catch(() => '')));
    if (remembered?.name !== name) throw error;
    log.warn('the embedding endpoint does not answer; search uses words only until it does', { error });
    return createEndpointEmbedder({ ...options, dimensions: remembered.dimensions });
  }
}
