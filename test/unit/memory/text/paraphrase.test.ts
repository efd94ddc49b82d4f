import { expect, test } from 'vitest';
import { isNearDuplicate } from '../../../../memory/text/paraphrase.ts';

test('a text that says the same with a word more is a duplicate', () => {
  const said = 'sessions are evicted by redis because of the policy allkeys lru';
  expect(isNearDuplicate(said, said)).toBe(true);
  expect(isNearDuplicate(said, `Again: ${said}.`)).toBe(true);
});

test('texts that differ in a value, a word or a negation are not', () => {
  expect(isNearDuplicate('staging runs on port 5432', 'staging runs on port 5433')).toBe(false);
  expect(isNearDuplicate('indent with tabs in this repo', 'indent with spaces in this repo')).toBe(false);
  expect(isNearDuplicate('we do use npm in this one repo', 'we do not use npm in this one repo')).toBe(false);
  expect(isNearDuplicate('pool size of the worker pool is set', 'pool size of the worker pool is set 8')).toBe(false);
});
