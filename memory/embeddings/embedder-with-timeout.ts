import { CometError } from '../../common/errors.ts';
import type { Embedder } from './embedder.ts';

export interface PatienceOptions {
  /** A question waits no longer: its words are searched for without a vector. */
  readonly queryMs: number;
  /** Told when questions go without a vector, once until one has one again. */
  readonly report: (message: string) => void;
}

/** An embedder whose failures and delays cost a question its vector and nothing else: zeros match nothing. */
export function createPatientEmbedder(embedder: Embedder, { queryMs, report }: PatienceOptions): Embedder {
  let isOut = false;
  return {
    ...embedder,
    async embedQuery(text, corpus) {
      try {
        const found = await inTime(embedder.embedQuery(text, corpus), queryMs);
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

async function inTime<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new CometError('index_failed', `no vector within ${ms} ms`);
    timer = setTimeout(() => reject(error), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    // The loser of the race must not end as an unhandled rejection.
    void work.catch(() => undefined);
  }
}
