import { expect, it } from 'vitest';
import { findModelTraits } from '../../../proxy/wire/models.ts';
import { CACHE_WRITE, getRules } from '../../mock-anthropic/models.ts';

it.each([
  'claude-fable-5-2',
  'claude-fable-5-1',
  'claude-mythos-5',
  'claude-opus-5-5',
  'claude-opus-5',
  'claude-sonnet-5-5[1m]',
  'claude-sonnet-5',
  'claude-haiku-5-5',
  'claude-opus-4-8',
  'claude-opus-4-7',
  'claude-opus-4-6',
  'claude-sonnet-4-6',
  'claude-opus-4-5-20251101',
  'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
  'claude-haiku-4-5-20251001',
  'claude-opus-4-1-20250805',
  'claude-opus-4-20250514',
  'claude-sonnet-4-20250514',
  'claude-3-7-sonnet-20250219',
  'claude-3-5-haiku-20241022',
  'claude-3-haiku-20240307',
  'claude-3-opus-20240229',
  'another-model',
])('the mock API and the product know the same of %s', (model) => {
  const { prefill, keepsThinking: _, ...rules } = getRules(model);
  expect(findModelTraits(model)).toMatchObject({
    ...rules,
    family: expect.any(String),
    prefill,
    cacheWrite5m: CACHE_WRITE['5m'],
    cacheWrite1h: CACHE_WRITE['1h'],
  });
});
