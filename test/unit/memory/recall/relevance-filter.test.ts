import { describe, expect, test } from 'vitest';
import { textVector } from '../../../../memory/embeddings/static-embedder.ts';
import {
  computeCoverage,
  FILTER_RULES,
  isRelevant,
  leastCoverage,
  UNSEEN,
  weighTerms,
} from '../../../../memory/recall/relevance-filter.ts';
import { contentTokens } from '../../../../memory/text/keywords.ts';
import { uniqueTokens } from '../../../../memory/text/tokenizer.ts';

const ROWS = 100;
const MIN_COVERAGE = 0.5;
const idf = (df: number): number => Math.log(1 + (ROWS - df + 0.5) / (df + 0.5));

/** Words of a memory of 100 rows, and in how many of them each stands. */
const KNOWN: Readonly<Record<string, number>> = {
  port: 12,
  billing: 6,
  warehouse: 6,
  timeout: 10,
  settings: 10,
  limit: 8,
  nightly: 9,
  cleanup: 9,
  run: 30,
  test: 60,
  redis: 3,
  queue_v2: 2,
  queue: 20,
  v: 2,
};
const KNOWN_TOKENS = new Map(
  Object.entries(KNOWN).flatMap(([word, df]) => uniqueTokens(word).map((token) => [token, idf(df)] as const)),
);

function passes(question: string, turn: string): boolean {
  const idfs = new Map([...contentTokens(question), UNSEEN].map((token) => [token, KNOWN_TOKENS.get(token) ?? idf(0)]));
  const terms = weighTerms(question, idfs);
  return isRelevant(computeCoverage(terms, turn), terms, MIN_COVERAGE);
}

describe('one turn must contain most of what is asked', () => {
  const port = 'Let billing listen on 4100. billing binds to port 4100 now.';
  const timeout = 'Calls to warehouse give up after 900 ms, the timeout is 900 ms.';

  test('thing and topic together pass', () => {
    expect(passes('On what port does billing run?', port)).toBe(true);
  });

  test('the thing without the topic, and the topic of another thing, do not', () => {
    expect(passes('What timeout does billing have?', port)).toBe(false);
    expect(passes('Which limit has billing?', timeout)).toBe(false);
  });

  test('a subject that memory never saw is missing everywhere', () => {
    expect(passes('On what port does the podcast run?', port)).toBe(false);
    expect(passes('Does the nightly cleanup empty the aquarium filter?', 'The nightly cleanup runs at 02:00.')).toBe(
      false,
    );
  });

  test('identifiers must be there as they are', () => {
    expect(passes('How is queue_v2 tested?', 'the queue is tested')).toBe(false);
    expect(passes('How is queue_v2 tested?', 'queue_v2 is tested on its own')).toBe(true);
  });

  test('words that stand everywhere select nothing', () => {
    expect(passes('run the tests', 'I run the tests now')).toBe(false);
  });

  test('pairs of letters of a script without spaces are terms', () => {
    expect(passes('청구 서비스 포트', '청구 서비스의 포트는 4100')).toBe(true);
  });

  test.each(['', 'billing'])('nothing covers nothing: %j', (question) => {
    expect(passes(question, '')).toBe(false);
  });
});

describe('a date that the question names', () => {
  const question = 'Which timeout did we set for billing in october 2025?';
  const rest = 'Which timeout did we set for billing';
  const idfs = new Map([...contentTokens(question), UNSEEN].map((token) => [token, KNOWN_TOKENS.get(token) ?? idf(0)]));
  const rare = { rest, rarity: idf(2) };
  const weigh = (text: string, agreement: number, date: { rest: string; rarity: number } | null = rare): boolean => {
    const terms = weighTerms(question, idfs, FILTER_RULES, date);
    return isRelevant(computeCoverage(terms, text, agreement), terms, MIN_COVERAGE, agreement);
  };

  test('need not stand in the turns of that date', () => {
    const turn = 'billing gives up after 900 ms, that is its timeout';
    expect(weigh(turn, 0, null)).toBe(false);
    expect(weigh(turn, 1)).toBe(true);
    expect(weigh(turn, 0)).toBe(true);
  });

  test('counts for turns of that date, and does not replace what is asked', () => {
    expect(weigh('the port of billing', 0)).toBe(false);
    expect(weigh('the port of billing', 1)).toBe(true);
    expect(weigh('we had lunch', 1)).toBe(false);
  });

  test('counts as much as it is rare', () => {
    expect(weigh('the port of billing', 1, { rest, rarity: 0 })).toBe(false);
  });

  test('suffices where nothing else is asked', () => {
    const terms = weighTerms('yesterday', idfs, FILTER_RULES, { rest: ' ', rarity: idf(2) });
    const passesAt = (agreement: number): boolean =>
      isRelevant(computeCoverage(terms, 'anything', agreement), terms, MIN_COVERAGE, agreement);
    expect([passesAt(1), passesAt(0)]).toEqual([true, false]);
  });
});

describe('the similarity of a text to the query', () => {
  const least = (text: string, minCoverage = 0.5): number =>
    leastCoverage(minCoverage, weighTerms('how is the database backed up?', new Map()), textVector(text));

  test('less suffices where it is near, and more is asked where it is not', () => {
    expect(least('a nightly job dumps the database to the archive')).toBeLessThan(0.5);
    expect(least('the colors of the chart are too bright')).toBeGreaterThan(0.5);
  });

  test('changes nothing where it is not known', () => {
    expect(least('')).toBe(0.5);
  });

  test('a share of nothing lets everything pass', () => {
    expect(least('the colors of the chart are too bright', 0)).toBe(0);
  });
});
