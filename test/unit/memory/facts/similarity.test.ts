import { expect, it } from 'vitest';
import { fuzzySimilarity } from '../../../../memory/facts/similarity.ts';

const { threshold, score } = fuzzySimilarity();

it.each([
  ['photography', 'photos'],
  ['picasso', 'pablo picasso'],
  ['postgres 16', 'postgresql 16'],
  ['사진', '사진 촬영'],
])('%s and %s are paraphrases', (one, other) => {
  expect(score(one, other)).toBeGreaterThanOrEqual(threshold);
  expect(score(one, other)).toBe(score(other, one));
});

it.each([
  ['photography', 'picasso'],
  ['dark mode', 'light mode'],
  ['port 8080 for the api', 'port 8081 for the api'],
  ['use redis', 'not use redis'],
  ['사진', '커피'],
  ['', 'x'],
])('%s and %s are different', (one, other) => {
  expect(score(one, other)).toBeLessThan(threshold);
});
