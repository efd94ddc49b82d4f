import { describe, expect, it } from 'vitest';
import { findModelTraits } from '../../../../proxy/wire/models.ts';
import { findPrices } from '../../../../proxy/wire/prices.ts';

const MODELS = [
  'fable-5-1',
  'opus-5-5',
  'opus-5',
  'sonnet-5',
  'haiku-5-5',
  'opus-4-8',
  'sonnet-4-6',
  'haiku-4-5',
  '3-haiku',
];

describe('prices', () => {
  it.each(MODELS)('of claude-%s are a line of their own, with its source and its date', (model) => {
    const { family, source, inputPrice, outputPrice } = findModelTraits(`claude-${model}`);
    expect(family).not.toBe('unknown');
    expect(findPrices(family).source).toBe(source);
    expect(source).toMatch(/20\d\d/);
    expect(outputPrice).toBe(5 * inputPrice);
  });

  it('make reading cheaper than sending, and writing dearer the longer it lasts', () => {
    for (const model of [...MODELS, 'omega-9']) {
      const { cacheRead, cacheWrite5m, cacheWrite1h } = findModelTraits(`claude-${model}`);
      expect(cacheRead).toBeLessThan(1);
      expect([cacheWrite5m, cacheWrite1h]).toEqual([1.25, 2]);
    }
  });

  it('of an unknown family use the smallest window and the largest minimum', () => {
    expect(findPrices('omega')).toMatchObject({ contextTokens: 200_000, minCacheTokens: 4_096, cacheRead: 0.1 });
  });
});
