import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import type { Config } from '../../common/config.ts';
import { CometError, getReason, type Problem } from '../../common/errors.ts';
import { writeFileAtomic } from '../../common/files.ts';
import type { Log } from '../../common/log.ts';
import type { HomePaths } from '../../common/paths.ts';
import { parseJson } from '../../common/text.ts';
import type { Redactor } from '../../redact/index.ts';
import type { Embedder } from './embedder.ts';
import { createDirectEmbedder } from './encoder.ts';
import { MINILM, missingPackages } from './model-encoder.ts';
import { createStaticEncoder, STATIC } from './static-encoder.ts';

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
    if (config.embedder === 'minilm') return await openMiniLm(paths);
  } catch (error) {
    report({ file: 'embedder', message: `${getReason(error)}; static replaces it until the next start` });
  }
  return openStatic();
}

/** The table before decision 0066, which is gone: until the new index is complete, the one of it answers by words. */
const FORMER: Embedder = {
  id: 'static-minilm-128-v1',
  dimensions: 128,
  embed: async (texts) =>
    texts.map(() => ({ vector: new Float32Array(FORMER.dimensions), scriptVector: null, pieces: new Uint16Array() })),
  embedQuery: async () => ({ vector: new Float32Array(FORMER.dimensions), comparedWith: 'vector' }),
  close: async () => {},
};

/** The embedder of these vectors, or null where its packages are missing. A former endpoint is not used again. */
export async function getEmbedder(
  id: string,
  paths: HomePaths,
  wrap: (embedder: Embedder) => Embedder,
): Promise<Embedder | null> {
  if (id === FORMER.id) return FORMER;
  if (id !== STATIC.id && id !== MINILM.id) return null;
  const opening = id === STATIC.id ? openStatic() : openMiniLm(paths);
  return await opening.then(wrap, () => null);
}

/** What a cosine of MiniLM counts in ranking, as a multiple of one of the table. Source: `npm run bench:real -- --models DIR`. */
const MINILM_WEIGHT = 2;

/** The rules of recall with the weight that vectors of this embedder have; the same object where that is the standard. */
export function weighFor(id: string, recall: Config['recall']): Config['recall'] {
  if (id !== MINILM.id) return recall;
  return { ...recall, weights: { ...recall.weights, meaning: recall.weights.meaning * MINILM_WEIGHT } };
}

/** On this thread: one of its own would take 30 MB, and the table takes microseconds for a word. */
async function openStatic(): Promise<Embedder> {
  return createDirectEmbedder(createStaticEncoder());
}

/** @throws CometError `index_failed` where packages are missing */
async function openMiniLm({ modelsDir }: HomePaths): Promise<Embedder> {
  const missing = missingPackages(modelsDir);
  if (missing !== null) throw new CometError('index_failed', `${missing.detail}: ${missing.install}`);
  const { createWorkerEmbedder } = await import('./worker-embedder.ts');
  return createWorkerEmbedder(modelsDir);
}

async function openEndpoint({ env, config, paths, redactor, log }: EmbedderParts): Promise<Embedder> {
  const { createEndpointEmbedder, endpointName, probeDimensions } = await import('./endpoint-embedder.ts');
  const options = { ...config.embedding, env, cwd: paths.home, redact: redactor.text };
  const name = endpointName(options);
  const file = path.join(paths.modelsDir, 'endpoint.json');
  try {
    const dimensions = await probeDimensions(options);
    await writeFileAtomic(file, JSON.stringify({ name, dimensions }));
    return createEndpointEmbedder({ ...options, dimensions });
  } catch (error) {
    // Null: it never answered, or the file is damaged.
    const remembered = Remembered.parse(parseJson(await readFile(file, 'utf8').catch(() => '')));
    if (remembered?.name !== name) throw error;
    log.warn('the embedding endpoint does not answer; search uses words only until it does', { error });
    return createEndpointEmbedder({ ...options, dimensions: remembered.dimensions });
  }
}
