import { describe, expect, test } from 'vitest';
import { createWordRarity, loadStaticTable } from '../../../../memory/embeddings/static-encoder.ts';
import { UNSEEN } from '../../../../memory/recall/query-weights.ts';
import { createPassageScale, passesGate } from '../../../../memory/recall/relevance-filter.ts';
import { weighAsked } from '../../../../memory/recall/required-terms.ts';
import { uniqueTokens } from '../../../../memory/text/tokenizer.ts';

const lexicon = createWordRarity(loadStaticTable);
const rules = { minCoverage: 0.65 };
const ROWS = 100;
const idf = (df: number): number => Math.log(1 + (ROWS - df + 0.5) / (df + 0.5));

/** Words of a memory of 100 rows, and in how many of them each stands. */
const KNOWN: Readonly<Record<string, number>> = {
  port: 12,
  billing: 6,
  warehouse: 6,
  timeout: 10,
  settings: 10,
  limit: 8,
  minute: 8,
  nightly: 9,
  cleanup: 9,
  run: 30,
  test: 60,
  file: 30,
  settled: 10,
  config: 12,
  changes: 9,
  redis: 3,
  queue_v2: 2,
  queue: 20,
};
const KNOWN_TOKENS = new Map(
  Object.entries(KNOWN).flatMap(([word, df]) => uniqueTokens(word).map((token) => [token, idf(df)] as const)),
);

function passes(question: string, passages: readonly string[], isLinked = false): boolean {
  const weights = new Map(
    [...uniqueTokens(question), UNSEEN].map((token) => [token, KNOWN_TOKENS.get(token) ?? idf(0)] as const),
  );
  const asked = weighAsked(question, weights, lexicon);
  return createPassageScale(asked, lexicon)(passages).some((each) => passesGate(each, rules, isLinked));
}

describe('what is asked must stand in one place', () => {
  const port = 'Let billing listen on 4100. billing binds to port 4100 now.';
  const other = 'Calls to warehouse give up after 900 ms, the timeout is 900 ms.';

  test('thing and topic together pass', () => {
    expect(passes('On what port does billing run?', [other, port])).toBe(true);
  });

  test('the thing without the topic, and the topic of another thing, do not', () => {
    expect(passes('What timeout does billing have?', [other, port])).toBe(false);
    expect(passes('On what port does warehouse run?', [other, port])).toBe(false);
  });

  test('an unnamed subject is missing everywhere', () => {
    expect(passes('On what port does the podcast run?', [port])).toBe(false);
    expect(passes('When does the nightly cleanup of the aquarium run?', ['The nightly cleanup runs at 02:00.'])).toBe(
      false,
    );
  });
});

test('a common word that was never said may be a paraphrase', () => {
  const port = 'Let billing listen on 4100. billing binds to port 4100 now.';
  expect(passes('Which port do I connect to for billing?', [port])).toBe(true);
});

test('forms of a word stand for each other', () => {
  expect(passes('Where is the configuration of billing?', ['the config of billing lies in etc/billing.toml'])).toBe(
    true,
  );
});

test('identifiers, figures and proper names must be there as they are', () => {
  expect(passes('How is queue_v2 tested?', ['the queue is tested on its own'])).toBe(false);
  expect(passes('How is queue_v2 tested?', ['queue_v2 is tested on its own'])).toBe(true);
  expect(passes('What are the settings in Munich?', ['the settings in Hamburg'])).toBe(false);
});

test('an identifier is also there inside a longer one', () => {
  expect(passes('What does queue_v2 hold?', ['see flags/my_queue_v2_on'])).toBe(true);
});

test('common words alone say nothing, however many of them agree', () => {
  expect(passes('Run the tests', ['we run the tests'])).toBe(false);
});

test('a long prompt need not be covered in full', () => {
  const prompt =
    'In redis the billing keys vanish; look at the nightly cleanup, its settings and its limit, then tidy the comments ' +
    'and the layout of that module';
  expect(passes(prompt, ['The nightly cleanup of billing in redis has its limit among its settings.'])).toBe(true);
  expect(passes(prompt, ['the layout of the module'])).toBe(false);
});

test('a memory that passed settles a doubt about those it links to', () => {
  const question = 'Which limit and which timeout has billing a minute?';
  const doubtful = ['billing has a limit'];
  expect(passes(question, doubtful)).toBe(false);
  expect(passes(question, ['the limit of billing'], true)).toBe(true);
});

test('nothing asked or nothing said covers nothing', () => {
  expect(passes('', ['anything'])).toBe(false);
  expect(passes('billing', [])).toBe(false);
  expect(passes('billing', [''])).toBe(false);
});

test('pairs of letters of a script without spaces need not all be there', () => {
  expect(passes('청구 서비스 포트', ['청구 서비스의 포트는 4100'])).toBe(true);
});
