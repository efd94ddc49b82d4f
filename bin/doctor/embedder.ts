import type { Config } from '../../common/config.ts';
import { getMessage } from '../../common/errors.ts';
import { probeDimensions } from '../../memory/embeddings/index.ts';
import { bad, type Check, good } from './index.ts';

const ANSWER_MS = 10_000;

/** An endpoint is asked for one vector of one word. */
export async function checkEmbedder(
  { embedder, embedding }: Pick<Config, 'embedder' | 'embedding'>,
  env: NodeJS.ProcessEnv,
): Promise<Check> {
  if (embedder !== 'endpoint') return good('embedder', embedder);
  const options = { ...embedding, timeoutMs: ANSWER_MS, env, redact: (text: string) => text };
  try {
    const dimensions = await probeDimensions(options);
    return good('embedder', `${embedding.model} at ${new URL(embedding.baseUrl).host}, ${dimensions} numbers`);
  } catch (error) {
    return bad('embedder', getMessage(error), 'start it, or correct embedding.baseUrl, model, keyEnv or keyCommand');
  }
}
