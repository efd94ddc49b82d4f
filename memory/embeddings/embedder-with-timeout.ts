import { withTimeout } from '../../common/async.ts';
import { CometError } from '../../common/errors.ts';
import type { Embedder } from './embedder.ts';

export interface EmbedderTimeoutOptions {
  /** After this, a query is searched by words only. */
  readonly queryMs: number;
  /** Called once per outage. */
  readonly report: (message: string) => void;
}

/** Replaces a late or failed query vector by zeros, which match nothing. */
export function createEmbedderWithTimeout(embedder: Embedder, { queryMs, report }: EmbedderTimeoutOptions): Embedder {
  let isOut = false;
  const late = (): Error => new CometError('index_failed', `embedding timed out after ${queryMs} ms`);
  return {
    ...embedder,
    async embedQuery(text, corpus) {
      try {
        const found = await withTimeout(embedder.embedQuery(text, corpus), queryMs, late);
        isOut = false;
        return found;
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        if (!isOut) report(`searching by words only: ${why}`);
        isOut = true;
        return { vector: new Float32Array(embedder.dimensions), comparedWith: 'vector' };
      }
    },
  };
}
