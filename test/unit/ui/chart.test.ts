import { expect, it } from 'vitest';
import { getColumns } from '../../../ui/chart.ts';

const day = (saved: number) => ({
  ...{ day: '2026-11-02', requests: 1, original: 100, sent: 60, own: 10, cache_read: 0, cache_write: 0 },
  ...{ untouched_usd: 2, sent_usd: 1, own_usd: 0.1, net_saved_usd: saved },
});

it('shows a day that lost as a line that goes down', () => {
  const saved = getColumns([day(2), day(-1)], 'money').at(-1);
  expect(saved?.values).toEqual([2, 1]);
});

it('counts the calls of memory itself as sent', () => {
  expect(getColumns([day(2), day(2)], 'tokens').map(({ values }) => values)).toEqual([
    [100, 100],
    [60, 60],
    [10, 10],
    [30, 60],
  ]);
});
