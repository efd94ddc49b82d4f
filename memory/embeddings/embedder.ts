import { withTimeout } from '../../common/async.ts';
import { CometError, getReason } from '../../common/errors.ts';

export interface Embedding {
  /** A unit vector, or all zeros for a text without words. */
  readonly vector: Float32Array;
  /** For queries in Hangul, kana or Han; null if the text has none of them or `vector` covers them. */
  readonly scriptVector: Float32Array | null;
  /** Distinct ids of its subwords, ascending; empty if the embedder does not weigh them. */
  readonly pieces: Uint16Array;
}

export interface Corpus {
  /** Inverse document frequency of each subword. */
  pieceWeights(pieces: readonly number[]): ReadonlyMap<number, number>;
  /** Approximate mean of its vectors; null if there are too few. */
  mean(): Promise<Float32Array | null>;
}

/** Turns text into vectors. Never holds the thread that streams for more than a few milliseconds. */
export interface Embedder {
  /** Stored with each vector; a different id requires a new index. */
  readonly id: string;
  readonly dimensions: number;
  /** One embedding for each text, in order. */
  embed(texts: readonly string[]): Promise<readonly Embedding[]>;
  /** Takes precedence over running `embed` calls. */
  embedQuery(
    text: string,
    corpus: Corpus,
  ): Promise<{ readonly vector: Float32Array; readonly comparedWith: 'vector' | 'scriptVector' }>;
  close(): Promise<void>;
}

/**
 * Replaces a late or failed query vector by zeros, which match nothing.
 * @param options.queryMs  after this, a query is searched by words only
 * @param options.report   called once per outage
 */
export function createEmbedderWithTimeout(
  embedder: Embedder,
  { queryMs, report }: { readonly queryMs: number; readonly report: (message: string) => void },
): Embedder {
  let isOut = false;
  const late = (): Error => new CometError('index_failed', `embedding timed out after ${queryMs} ms`);
  return {
    ...embedder,
    async embedQuery(text, corpus) {
      try {
        const vector = await withTimeout(embedder.embedQuery(text, corpus), queryMs, late);
        isOut = false;
        return vector;
      } catch (error) {
        if (!isOut) report(`searching by words only: ${getReason(error)}`);
        isOut = true;
        return { vector: new Float32Array(embedder.dimensions), comparedWith: 'vector' };
      }
    },
  };
}
