import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { describesBehavior, reportsWork, settledBy } from '../../../../memory/text/explain.ts';

describe('what tells how something works', () => {
  test.each([
    'The invoice worker reads its rates from `rates.toml`',
    '`retry_count` - How often a webhook is sent again',
    '`loadRates()` - Reads and checks the table of rates',
    'For refunds, the main ledger stores both sides in `entries`',
    'Webhook signatures are stored in the `x-signature` header',
    'Redis never keeps a session longer than `SESSION_TTL`',
    'The monthly export does not lock the `invoices` table, readers go on',
    'When a job fails, `runJob()` keeps it in the queue for an hour',
  ])('is taken: %s', (text) => {
    expect(describesBehavior(text)).toBe(true);
  });

  test.each([
    ['an account', 'The worker was reading its rates from `rates.toml`'],
    ['a finding', 'The issue is that `loadRates()` returns nothing here'],
    ['a change', 'The worker has been updated to read its rates from `rates.toml`'],
    ['a change of a file', '`rates.ts` - Reads the table of rates when it starts'],
    ['a change as a noun', '`loadRates()` - signature change in two callers'],
    ['a test', '`TestLoadRates` - Reads a table without a single rate'],
    ['a revision', '`4f2a9c1` - Reads the table of rates when it starts'],
    ['a place', 'The worker reads its rates from `rates.toml` on line 20'],
    ['an order', 'Read the rates from `rates.toml` before the worker starts'],
    ['advice', 'The worker should read its rates from `rates.toml`'],
    ['a reference', 'This worker reads its rates from `rates.toml` only once'],
    ['no name', 'The invoice worker reads its rates from a file of its own'],
    ['no subject', 'It reads its rates from `rates.toml` when it starts'],
    ['a general subject', 'The function reads its rates from `rates.toml` at start'],
    ['one day', 'The invoice worker reads `rates.toml` of 2026-03-01 when it starts'],
    ['a cut', 'The invoice worker reads its rates from `rates.toml` and …'],
    ['a question', 'The invoice worker reads its rates from `rates.toml`?'],
  ])('is not %s', (_, text) => {
    expect(describesBehavior(text)).toBe(false);
  });

  test('is found in time, whatever the text', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('`', '(', ')', ' ', 'a', 's', '-', '"', '.'), maxLength: 400 }),
        (text) => {
          expect(typeof describesBehavior(text)).toBe('boolean');
          expect(typeof settledBy(text)).toBe('string');
        },
      ),
    );
  });
});

describe('what a user settles', () => {
  test.each([
    [
      'ok, let\'s call it "batch" in the messages, as in the API',
      'let\'s call it "batch" in the messages, as in the API',
    ],
    ['we only use gitCli where there is no worktree', 'we only use gitCli where there is no worktree'],
    ["the hash changes with a rebase, that's why we write the Invoice/Id trailer", null],
  ])('is taken without its lead: %s', (text, settled) => {
    expect(settledBy(text)).toBe(settled ?? text);
  });

  test.each([
    "let's try the invoice-worker first",
    "let's update CLAUDE.md with the new commands",
    "let's use this for the invoice-worker for now",
    'can we use go-git where there is no worktree',
    "let's keep it as it is in the end",
  ])('is not %s', (text) => {
    expect(settledBy(text)).toBe('');
  });
});

test('a report of work is told by its words', () => {
  expect(['Added two helpers', 'All tests pass now', 'Files changed'].every(reportsWork)).toBe(true);
  expect(reportsWork('The worker reads `rates.toml`')).toBe(false);
});
