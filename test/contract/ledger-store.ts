import { describe, expect, it } from 'vitest';
import type { LedgerRecord, LedgerStore } from '../../proxy/ledger/store.ts';

const bill = { input: 1, cacheRead: 2, cacheWrite5m: 3, cacheWrite1h: 4 };
const request = (requestId: string): LedgerRecord => ({
  kind: 'request',
  atMs: 1,
  requestId,
  conversation: 's',
  root: '',
  model: 'claude-opus-5-5',
  rewritten: true,
  counts: true,
  cut: false,
  billed: bill,
  untouched: bill,
  output: 5,
  touched: [{ key: 'k', ttl: '1h', expiresAtMs: 9 }],
});

/** What every ledger store does; `open` gives the same store again, as after a restart. */
export function ledgerStoreContract(name: string, open: () => LedgerStore): void {
  describe(name, () => {
    it('gives back what was appended, in order, after a restart too', async () => {
      const store = open();
      const before = await store.load();
      const records = [request('a'), { kind: 'refused', atMs: 2, conversation: 's' } as const, request('b')];
      await Promise.all(records.map((record) => store.append(record)));
      await store.close();
      expect(await open().load()).toEqual([...before, ...records]);
    });

    it('puts new records in the place of all others, and goes on from there', async () => {
      const store = open();
      await store.append(request('old'));
      await store.replace([request('x')]);
      await store.append(request('y'));
      await store.close();
      expect(await open().load()).toEqual([request('x'), request('y')]);
    });
  });
}
