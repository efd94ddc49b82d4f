import { expect, it } from 'vitest';
import { EMPTY_TOTALS } from '../../../../proxy/ledger/entry.ts';
import { NEW_BALANCE } from '../../../../proxy/ledger/loss-detector.ts';
import { LedgerState } from '../../../../proxy/ledger/state.ts';

it('a conversation that its client compacts for ever is known by its newest beginnings', () => {
  const book = new LedgerState({ tolerance: 0.05, credit: 10_000, longestHorizon: 60 });
  const about = { lastAtMs: 0, rewritten: true, off: null, totals: EMPTY_TOTALS, balance: NEW_BALANCE };
  for (let at = 0; at <= 4_000; at += 1) {
    book.apply({ kind: 'conversation', conversation: { id: 'c', root: `root ${at}`, ...about } });
  }
  expect(book.wasRewritten('a fork', 'root 0')).toBe(false);
  expect(book.wasRewritten('a fork', 'root 1')).toBe(true);
  expect(book.wasRewritten('a fork', 'root 4000')).toBe(true);
});
