import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseStatement, revisesStatement } from '../../../../memory/compaction/supersession-patterns.ts';

const revises = (next: string, former: string): boolean =>
  revisesStatement(parseStatement(next), parseStatement(former));

test.each([
  ['From now on the staging database listens on port 6432 instead', 'The staging database listens on port 5433'],
  ['We moved the staging database to port 6432', 'The staging database listens on port 5433'],
  ['Staging port is now 6432', 'the staging port is 5433'],
  ["Let's use Vitest instead of Jest for unit tests", 'We use Jest for the unit tests'],
  ['Use pnpm instead of npm', 'we use npm for installs'],
  ['The request timeout is now 30s', 'The request timeout is 10s'],
  ['The API docs moved to docs/api/v2.md', 'API docs are in docs/api.md'],
])('“%s” revises “%s”', (next, former) => {
  expect(revises(next, former)).toBe(true);
});

test.each([
  ['Now the production database listens on port 5499', 'The staging database listens on port 5433'],
  ['The staging database listens on port 6432', 'The staging database listens on port 5433'],
  ['use port 5499 instead of 5433 for production', 'The staging database listens on port 5433'],
  ['Now fix the failing staging tests', 'The staging database listens on port 5433'],
  ['From now on always run the staging database in Docker', 'The staging database listens on port 5433'],
  ['The staging database listens on port 5433 now', 'The staging database listens on port 5433'],
  ['The request timeout is now 30s', 'The connect timeout of redis is 10s'],
  ['We use pnpm, not npm, in the web client', 'we use npm for the docs site'],
  ['Use Vitest instead of Jest', 'We use Vitest instead of Jest for unit tests'],
])('“%s” leaves “%s” as it is', (next, former) => {
  expect(revises(next, former)).toBe(false);
});

test('no statement revises itself, and any texts give a result', () => {
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.lorem());
  fc.assert(
    fc.property(text, text, (next, former) => {
      expect(revises(next, next)).toBe(false);
      expect(typeof revises(next, former)).toBe('boolean');
    }),
  );
});

test('without a word that says so, nothing is revised', () => {
  const plain = fc.constantFrom('the staging port is', 'our queue holds', 'retries are');
  fc.assert(
    fc.property(plain, fc.nat(9_999), fc.nat(9_999), (subject, one, other) => {
      expect(revises(`${subject} ${one}`, `${subject} ${other}`)).toBe(false);
      expect(revises(`${subject} now ${one}`, `${subject} ${other}`)).toBe(one !== other && subject !== 'retries are');
    }),
  );
});
