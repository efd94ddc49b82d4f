import { expect, it } from 'vitest';
import { sumSaved } from '../../../../engine/api/cost.ts';
import type { CostLedger } from '../../../../proxy/ledger/index.ts';

const at = (time: string): number => Date.parse(`${time}:00Z`);
const totals = (original: number) => ({
  ...{ requests: 1, original, sent: original / 2, ownTokens: 0, refused: 0, ownCalls: 0 },
  ...{ cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0 },
  ...{ untouchedEquivalents: 0, sentEquivalents: 0, untouchedUsd: 2, sentUsd: 1, ownUsd: 0 },
});
const ledger: Pick<CostLedger, 'days'> = {
  days: () => [
    ['2026-11-25', totals(100)],
    ['2026-11-26', totals(1_000)],
    ['2026-11-27', totals(10_000)],
  ],
};

it('sums whole days, each for one brief, and the day so far where a brief follows another on its day', () => {
  const sum = (from: string, to: string) => sumSaved(ledger, at(from), at(to));
  expect(sum('2026-11-25T03:00', '2026-11-27T03:00')).toMatchObject({ received: 1_100, sent: 550, isToday: false });
  expect(sum('2026-11-27T03:00', '2026-11-27T18:00')).toMatchObject({ received: 10_000, sent: 5_000, isToday: true });
});
