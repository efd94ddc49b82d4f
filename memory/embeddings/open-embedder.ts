import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import type { Config } from '../../common/config.ts';
import { getReason, type Problem } from '../../common/errors.ts';
import { writePrivateFile } from '../../common/files.ts';
import type { Log } from '../../common/log.ts';
import type { HomePaths } from '../../common/paths.ts';
import { parseJson } from '../../common/text.ts';
import type { Redactor } from '../../redact/index.ts';
import type { Embedder } from './embedder.ts';
import { createStaticEmbedder, STATIC } from './static-embedder.ts';

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
  const { config, report } = parts;
  try {
    if (config.embedder === 'endpoint') return await openEndpoint(parts);
  } catch (error) {
    report({ file: 'embedder', message: `${getReason(error)}; static replaces it until the next start` });
  }
  return createStaticEmbedder();
}

/** Dimensions of embedders that are gone. */
const FORMER: Readonly<Record<string, number>> = { 'static-minilm-128-v1': 128, 'minilm-384-fp16-v1': 384 };

/** Until the new index is complete, the one of a former embedder answers by words. */
function createFormer(id: string, dimensions: number): Embedder {
  const vector = new Float32Array(dimensions);
  return {
    ...{ id, dimensions },
    embed: async (texts) => texts.map(() => ({ vector, scriptVector: null, pieces: new Uint16Array() })),
    embedQuery: async () => ({ vector, comparedWith: 'vector' }),
    close: async () => {},
  };
}

/** The embedder of these vectors; null where it is not known. A former endpoint is not used again. */
export function getEmbedder(id: string, wrap: (embedder: Embedder) => Embedder): Embedder | null {
  const dimensions = FORMER[id];
  if (dimensions !== undefined) return createFormer(id, dimensions);
  return id === STATIC.id ? wrap(createStaticEmbedder()) : null;
}

async function openEndpoint({ env, config, paths, redactor, log }: EmbedderParts): Promise<Embedder> {
  const { createEndpointEmbedder, endpointName, probeDimensions } = await import('./endpoint-embedder.ts');
  const options = { ...config.embedding, env, redact: redactor.text };
  const name = endpointName(options);
  const file = path.join(paths.modelsDir, 'endpoint.json');
  try {
    const dimensions = await probeDimensions(options);
    await writePrivateFile(file, JSON.stringify({ name, dimensions }));
    return createEndpointEmbedder({ ...options, dimensions });
  } catch (error) {
    // Null: it never answered, or the file is damaged.
    const remembered = Remembered.parse(parseJson(await readFile(file, 'utf8').catch(() => '')));
    if (remembered?.name !== name) throw error;
    log.warn('the embedding endpoint does not answer; search uses words only until it does', { error });
    return createEndpointEmbedder({ ...options, dimensions: remembered.dimensions });
  }
}
