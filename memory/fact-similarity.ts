import { LruMap } from '../common/map.ts';
import type { Embedder } from './embeddings/embedder.ts';
import type { Similarity } from './facts/fact-store.ts';
import { isComparable } from './facts/similarity.ts';

const MOST_VECTORS = 2_000;

/** Paraphrases by the cosine of the embedder's vectors; `prepare` computes those of values that `score` will get. */
export function createVectorSimilarity(threshold: number, embedder: Pick<Embedder, 'embed'>) {
  const vectors = new LruMap<string, Float32Array>(MOST_VECTORS);
  return {
    threshold,
    score(one, other) {
      const [a, b] = [vectors.peek(one), vectors.peek(other)];
      if (a === undefined || b === undefined || !isComparable(one, other)) return 0;
      return a.reduce((sum, value, at) => sum + value * (b[at] as number), 0);
    },
    /** Without vectors only equal values are the same. */
    async prepare(values: readonly string[]): Promise<void> {
      const keys = [...new Set(values.map((value) => value.trim().toLowerCase()))];
      const fresh = keys.filter((key) => vectors.get(key) === undefined);
      const embeddings = fresh.length === 0 ? [] : await embedder.embed(fresh).catch(() => []);
      for (const [at, { vector }] of embeddings.entries()) vectors.set(fresh[at] as string, vector);
    },
  } satisfies Similarity & { prepare(values: readonly string[]): Promise<void> };
}
