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
    ['some-model', 'unknown'],
  ])('%s is of the family %s', (model, family) => {
    expect(findModelTraits(model).family).toBe(family);
  });

  it('assumes the worst of a model it does not know, and rules nothing out', () => {
    expect(findModelTraits('claude-omega-9')).toMatchObject({
      bindsThinking: true,
      systemMessages: true,
      thinking: 'both',
      prefill: false,
    });
  });
});
