import { expect, test } from 'vitest';
import { hashVector } from '../../../../memory/embeddings/hashed-vector.ts';
import { embedderContract } from '../../../contract/embedder.ts';
import { createHashEmbedder } from '../../../helpers/hash-embedder.ts';

embedderContract(async () => createHashEmbedder());

test('a misspelled identifier stays close through its n-grams', () => {
  const dot = (left: string, right: string): number =>
    hashVector(left, 256).reduce((sum, value, at) => sum + value * (hashVector(right, 256)[at] ?? 0), 0);
  expect(dot('reconnectTimeout', 'reconectTimeout')).toBeGreaterThan(0.5);
  expect(dot('reconnectTimeout', 'paginationCursor')).toBeLessThan(0.25);
});
