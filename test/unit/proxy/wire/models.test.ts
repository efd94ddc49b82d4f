import { describe, expect, it } from 'vitest';
import { findModelTraits } from '../../../../proxy/wire/models.ts';

describe('model traits', () => {
  it.each([
    ['claude-opus-4-8', 'opus-4.8'],
    ['claude-opus-4-8[1m]', 'opus-4.8'],
    ['claude-haiku-4-5-20251001', 'haiku-4.5'],
    ['claude-opus-5-20260724', 'opus-5'],
    ['claude-opus-5-5', 'opus-5.5'],
    ['claude-sonnet-5-5-20260901', 'sonnet-5.5'],
    ['claude-sonnet-4-20250514', 'sonnet-4'],
    ['claude-fable-5-2', 'fable-5.1'],
    ['claude-mythos-5', 'fable-5'],
    ['anthropic.claude-sonnet-4-6', 'sonnet-4.6'],
    ['claude-3-7-sonnet-latest', 'claude-3.7'],
    ['claude-3-5-haiku-20241022', 'claude-3-haiku'],
    ['claude-opus-4-1-20250805', 'opus-4'],
    ['us.anthropic.claude-sonnet-4-5-20250929-v1:0', 'sonnet-4.5'],
    ['claude-sonnet-4@20250514', 'sonnet-4'],
    ['claude-opus-5-6', 'unknown'],
    ['claude-opus-4-9', 'unknown'],
    ['claude-opus-55', 'unknown'],
    ['claude-haiku-5', 'unknown'],
    ['claude-opus-5-fast', 'unknown'],
    ['not-claude-opus-5', 'unknown'],
    ['some-model', 'unknown'],
  ])('%s is of the family %s', (model, family) => {
    expect(findModelTraits(model).family).toBe(family);
  });

  it('assumes the worst of a model it does not know', () => {
    expect(findModelTraits('claude-omega-9')).toMatchObject({
      bindsThinking: true,
      systemMessages: false,
      thinking: 'both',
      prefill: false,
    });
  });
});

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
    expect(findModelTraits('omega')).toMatchObject({ contextTokens: 200_000, minCacheTokens: 4_096, cacheRead: 0.025 });
  });
});
