import fc from 'fast-check';
import { expect, test } from 'vitest';
import { answerKind } from '../../../../memory/recall/answer-type.ts';
import { namesCall } from '../../../../memory/recall/query.ts';
import { weighQuery } from '../../../../memory/recall/query-weights.ts';
import { bestSnippet, chooseQuote } from '../../../../memory/recall/snippet.ts';
import { uniqueTokens } from '../../../../memory/text/tokenizer.ts';

function snippet(text: string, query: string, maxChars = 300): string | null {
  const tokens = uniqueTokens(query);
  const weights = weighQuery(tokens, new Map(tokens.map((token) => [token, 1])));
  const rules = { maxChars, callsAnswer: namesCall(query), kind: answerKind(query) };
  return bestSnippet(text, weights, rules)?.text ?? null;
}

test('the line that covers most of the query is given verbatim', () => {
  const text = 'connecting…\n  psql: error: port 5432 refused, staging uses port 5433\nretrying the port';
  expect(snippet(text, 'staging port')).toBe('psql: error: port 5432 refused, staging uses port 5433');
});

test('a line that asks gives way to one that answers', () => {
  expect(snippet('which port does staging use?\nstaging listens on port 5433', 'which port does staging use')).toBe(
    'staging listens on port 5433',
  );
});

test('the answer to a question is shown in its place, in any words', () => {
  const text = 'Next the shipments table. How large is it by now?\nAbout 4,381,902 rows and 34 columns.';
  expect(snippet(text, 'size of the shipments table')).toBe('About 4,381,902 rows and 34 columns.');
});

test('a call gives way to what was said, unless the query asks for a command', () => {
  const call = 'Bash {"command":"make flag-off FLAG=queue"}';
  const text = `The flag of the queue is off now.\n${call}`;
  expect(snippet(text, 'is the flag of the queue off')).toBe('The flag of the queue is off now.');
  expect(snippet(`The queue is new.\n${call}`, 'which command makes the flag of the queue go off')).toBe(call);
});

test.each([
  ['when does the backfill start', 'The backfill starts alone.\nThe backfill starts at 22:00.', '22:00'],
  ['how wide is the zone', 'The zone is rather wide.\nThe zone is 12 modules wide.', '12 modules'],
  ['who decides about the backfill', 'They decide about the backfill.\nFor the backfill Tobias decides.', 'Tobias'],
  ['why is the cache small', 'The cache is small.\nThe cache stays small because of the old nodes.', 'because'],
  ['where is the clock', 'The clock is fake.\nThe clock is in test/helpers.', 'test/helpers'],
])('of lines about the same the one that looks like an answer is shown: %s', (query, text, answer) => {
  expect(snippet(text, query)).toContain(answer);
});

test('of a long line whole sentences are given', () => {
  const text = `${'Filler words without meaning here. '.repeat(30)}Redis evicts at v7.2.4 only. ${'More filler here. '.repeat(30)}`;
  const found = snippet(text, 'redis evicts', 120);
  expect(found).toContain('Redis evicts at v7.2.4 only.');
  expect(found?.length).toBeLessThanOrEqual(120);
});

test('a text without any of the terms has no line to show', () => {
  expect(snippet('nothing here', 'redis')).toBeNull();
  expect(snippet('', 'redis')).toBeNull();
});

test('inflected forms and pairs of Hangul are found', () => {
  expect(snippet('one\nwe retried twice', 'retries')).toBeNull();
  expect(snippet('one\nall retries failed', 'retry')).toBe('all retries failed');
  expect(snippet('하나\n페이지 크기는 50개', '페이지 크기')).toBe('페이지 크기는 50개');
});

test('a line is part of its text, within bounds, and cuts no word', () => {
  const word = fc.oneof(
    fc.constantFrom('redis', 'port', '5433', 'src/a.ts', 'x'.repeat(90)),
    fc.string({ maxLength: 8 }),
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 60 }), fc.constantFrom(' ', '\n', '. '), (words, joint) => {
      const text = words.join(joint);
      const found = snippet(text, 'redis port', 60);
      if (found === null) return;
      expect(found.length).toBeLessThanOrEqual(60);
      const whole = new Set(text.split(/\s+/));
      for (const piece of found.split(/\s+/)) expect(whole).toContain(piece);
    }),
  );
});

test('a megabyte is read in bounded time', () => {
  const text = `${'retry port redis '.repeat(70_000)}\n`;
  expect(snippet(text, 'redis port')?.length).toBeLessThanOrEqual(300);
});

const tokens = uniqueTokens('how wide is the quiet zone of the barcodes');
const query = weighQuery(tokens, new Map(tokens.map((token) => [token, 1])));
const chosen = (...offered: (readonly [string, number])[]): string | undefined =>
  chooseQuote(
    offered.map(([text, rank]) => ({ text, rank, worth: rank, asked: '' })),
    query,
  )?.text;

test('the best line is shown, of two as good the later one', () => {
  expect(chosen(['a quiet zone', 2], ['a zone', 1])).toBe('a quiet zone');
  expect(chosen(['a quiet zone', 2], ['the quiet zone', 1.9])).toBe('the quiet zone');
  expect(chosen()).toBeUndefined();
});

test('a later line with another figure for the same thing takes the place of an older one', () => {
  const old = 'The quiet zone is 6 modules wide, the scanners need 10.';
  expect(chosen([old, 3], ['The quiet zone is 12 modules now.', 2])).toBe('The quiet zone is 12 modules now.');
  expect(chosen(['The quiet zone is 12 modules now.', 2], [old, 3])).toBe(old);
  expect(chosen([old, 3], ['12 parcels passed the zone', 2])).toBe(old);
});
