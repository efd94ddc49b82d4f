import { expect, test } from 'vitest';
import { passesGate, UNSEEN, weighEvidence, weighQuery } from '../../../../memory/core/gate.ts';

const rules = { minCoverage: 0.35, minSimilarity: 0.3 };
const idf = (rows: number, df: number): number => Math.log(1 + (rows - df + 0.5) / (df + 0.5));

/** A query over 100 rows; the numbers say in how many of them each token stands. */
function query(tokens: Record<string, number>): ReturnType<typeof weighQuery> {
  const weights = Object.entries({ ...tokens, [UNSEEN]: 0 }).map(([token, df]) => [token, idf(100, df)] as const);
  return weighQuery(Object.keys(tokens), new Map(weights));
}

const passes = (tokens: Record<string, number>, text: string, similarity = 0): boolean =>
  passesGate(weighEvidence(query(tokens), [text], similarity), rules);

test('a memory that covers what is rare in the query passes', () => {
  expect(passes({ redis: 3, evict: 1, session: 12 }, 'redis evicts keys')).toBe(true);
});

test('a memory that shares nothing but a common word does not', () => {
  expect(passes({ kafka: 0, topic: 2, order: 40 }, 'orders are streamed')).toBe(false);
  expect(passes({ test: 60 }, 'the tests pass')).toBe(false);
});

test('one word of many that agrees by chance does not open the gate', () => {
  expect(passes({ write: 1, haiku: 0, sea: 0 }, 'pnpm writes the file')).toBe(false);
  expect(passes({ haiku: 1 }, 'a haiku about tests')).toBe(true);
});

test('where little was asked one telling word is enough, in however many turns of its topic it stands', () => {
  expect(passes({ backfill: 9, run: 55 }, 'the backfill starts at 22:00')).toBe(true);
  expect(passes({ backfill: 9, run: 55 }, 'run the tests')).toBe(false);
  expect(passes({ depot: 9, browser: 0 }, 'the depot is closed', 0.5)).toBe(false);
  expect(passes({ backfill: 9, run: 55, friday: 20 }, 'the backfill starts at 22:00')).toBe(false);
});

test('where coverage is in doubt, similarity decides', () => {
  const tokens = { redis: 4, evict: 4, alpha: 2, beta: 2, gamma: 2, delta: 2 };
  expect(passes(tokens, 'redis evicts', 0.1)).toBe(false);
  expect(passes(tokens, 'redis evicts', 0.6)).toBe(true);
  expect(passes(tokens, 'nothing in common', 0.9)).toBe(false);
});

test('nothing asked or nothing known covers nothing', () => {
  expect(passes({}, 'anything', 1)).toBe(false);
  expect(passes({ word: 0 }, '', 1)).toBe(false);
});

test('the worth of a single row is found from what an unseen token weighs', () => {
  expect(query({ word: 1 }).single).toBeCloseTo(idf(100, 1), 6);
});

test('a long prompt is judged by its twelve rarest terms', () => {
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`common${at}`, 50]));
  expect(passes({ ...many, needle: 1, thread: 1, eye: 2 }, 'needle thread eye')).toBe(true);
});
