import fc from 'fast-check';
import { expect, test } from 'vitest';
import { revisesStatement, stated } from '../../../../memory/compaction/supersession-patterns.ts';
import { gistOf, mayRevise } from '../../../../memory/compaction/token-fingerprint.ts';

const gist = (...texts: readonly string[]): string => gistOf(texts.map(stated));
const word = fc.constantFrom(
  ...'staging database port queue parser timeout retries jest vitest npm pnpm docs/api.md fooBars 5433 6432 30s'.split(
    ' ',
  ),
);
const joint = fc.constantFrom(' now ', ' instead of ', ' uses ', ' is ', ' moved from ', ' to ', ' no longer ', ' ');
const statement = fc
  .array(fc.tuple(word, joint), { minLength: 1, maxLength: 7 })
  .map((pieces) => pieces.flat().join('').trim());

test('what revises a statement is never passed over, whatever else the nodes say', () => {
  let revisions = 0;
  fc.assert(
    fc.property(statement, statement, fc.array(statement, { maxLength: 2 }), (next, former, others) => {
      if (!revisesStatement(stated(next), stated(former))) return;
      revisions += 1;
      expect(mayRevise(gist(next, ...others), gist(former, ...others))).toBe(true);
    }),
    { numRuns: 5_000, seed: 1 },
  );
  expect(revisions).toBeGreaterThan(20);
});

test('statements of other words are told apart', () => {
  const named = (number: number): string =>
    `q${[...String(number)].map((digit) => 'bcdfghjklm'[Number(digit)]).join('')}`;
  const said = Array.from({ length: 60 }, (_, at) =>
    gist([1, 2, 3, 4].map((nth) => named(nth * 100 + at)).join(' now ')),
  );
  const left = said.flatMap((next) => said.filter((former) => former !== next && mayRevise(next, former)));
  expect(left.length).toBeLessThan((said.length * said.length) / 20);
});

test('a text of any length has one', () => {
  const former = stated('the staging port is 5433');
  const others = Array.from({ length: 300_000 }, (_, at) => `word${at}`);
  const long = gistOf([{ ...former, tokens: new Set([...former.tokens, ...others]) }]);
  expect(mayRevise(gist('the staging port is 6432 now'), long)).toBe(true);
});

test('a word takes two bytes, and without a cue nothing is asked', () => {
  expect(gist('The staging database listens on port 5433').length).toBeLessThan(10);
  expect(mayRevise(gist('the staging database port'), gist('the staging database port'))).toBe(false);
});
