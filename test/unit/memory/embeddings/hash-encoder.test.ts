import { describe, expect, test } from 'vitest';
import { createHashEmbedder, hashVector } from '../../../../memory/embeddings/hash-encoder.ts';
import { embedderContract } from '../../../contract/embedder.ts';

describe('the hash encoder', () => {
  embedderContract(async () => createHashEmbedder());
});

test('a misspelt identifier stays near through its n-grams', () => {
  const dot = (left: string, right: string): number =>
    hashVector(left).reduce((sum, value, at) => sum + value * (hashVector(right)[at] ?? 0), 0);
  expect(dot('reconnectTimeout', 'reconectTimeout')).toBeGreaterThan(0.5);
  expect(dot('reconnectTimeout', 'paginationCursor')).toBeLessThan(0.25);
});
