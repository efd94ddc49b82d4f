import { withTimeout } from '../../common/async.ts';
import { CometError } from '../../common/errors.ts';
import type { Embedder } from './embedder.ts';

export interface EmbedderTimeoutOptions {
  /** A question waits no longer: its words are searched for without a vector. */
  readonly queryMs: number;
  /** Told when questions go without a vector, once until one has one again. */
  readonly report: (message: string) => void;
}

/** An embedder whose failures and delays cost a question its vector and nothing else: zeros match nothing. */
export function createEmbedderWithTimeout(embedder: Embedder, { queryMs, report }: EmbedderTimeoutOptions): Embedder {
  let isOut = false;
  const late = (): Error => new CometError('index_failed', `no vector within ${queryMs} ms`);
  return {
    ...embedder,
    async embedQuery(text, corpus) {
      try {
        const found = await withTimeout(embedder.embedQuery(text, corpus), queryMs, late);
        isOut = false;
        return found;
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        if (!isOut) report(`questions are searched by their words only: ${why}`);
        isOut = true;
        return { vector: new Float32Array(embedder.dimensions), comparedWith: 'vector' };
      }
    },
  };
}
