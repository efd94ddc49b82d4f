import { describe, expect, it } from 'vitest';
import {
  type Balance,
  type BalanceChange,
  LOSS_LIMIT,
  NEW_BALANCE,
  updateBalance,
} from '../../../../proxy/ledger/loss-detector.ts';

const rule = { tolerance: 0.02, credit: 100, longestHorizon: 30 };
const quiet: BalanceChange = { untouchedUsd: 1, savedUsd: 0, tokenUsd: 0.001, returnUsd: null };
/** Costs 8 at once and promises 1 for each later request. */
const cut: BalanceChange = { ...quiet, savedUsd: -8, returnUsd: 1 };

function courseOf(movements: readonly BalanceChange[], from: Balance = NEW_BALANCE): Balance[] {
  const balances: Balance[] = [];
  for (const movement of movements) balances.push(updateBalance(balances.at(-1) ?? from, movement, rule));
  return balances;
}

describe('a net loss', () => {
  it('is not a cut that pays back as promised', () => {
    const paying = Array.from({ length: 20 }, () => ({ ...quiet, savedUsd: 1 }));
    expect(courseOf([quiet, cut, ...paying]).map(({ streak }) => streak)).toEqual(Array(22).fill(0));
  });

  it('is a cut that does not: three in a row at most three requests after its horizon', () => {
    const streaks = courseOf([quiet, cut, ...Array(12).fill(quiet)]).map(({ streak }) => streak);
    expect(streaks.slice(0, 2)).toEqual([0, 0]);
    const ends = streaks.indexOf(LOSS_LIMIT);
    expect(ends).toBeGreaterThan(LOSS_LIMIT);
    expect(ends).toBeLessThanOrEqual(1 + 8 + LOSS_LIMIT);
  });

  it('is found however often a losing conversation cuts', () => {
    const thrash = Array.from({ length: 60 }, (_, at) => (at % 2 === 0 ? cut : quiet));
    expect(courseOf(thrash).some(({ streak }) => streak >= LOSS_LIMIT)).toBe(true);
  });

  it('ends its series with the first request that pays again', () => {
    const losing = courseOf([{ ...quiet, savedUsd: -1 }, quiet]);
    expect(losing.at(-1)?.streak).toBe(2);
    expect(courseOf([{ ...quiet, savedUsd: 5 }], losing.at(-1)).at(-1)?.streak).toBe(0);
  });

  it('is not what memory may cost: the credit, or its share of a long conversation', () => {
    const talk = Array.from({ length: 50 }, () => ({ ...quiet, savedUsd: -0.019 }));
    expect(courseOf([{ ...quiet, savedUsd: -0.09 }, quiet, quiet, quiet]).every(({ streak }) => streak === 0)).toBe(
      true,
    );
    expect(courseOf(talk).every(({ streak }) => streak === 0)).toBe(true);
    expect(courseOf([{ ...quiet, savedUsd: -0.12 }]).at(-1)?.streak).toBe(1);
  });

  it('gives no cut longer than the longest horizon, and none to a cut that promises nothing', () => {
    expect(courseOf([{ ...cut, savedUsd: -900 }]).at(-1)?.investments).toEqual([{ usd: 900, horizon: 30, left: 30 }]);
    expect(courseOf([{ ...cut, returnUsd: -1 }]).at(-1)).toMatchObject({ investments: [], streak: 1 });
    expect(courseOf([{ ...cut, savedUsd: 2 }]).at(-1)).toMatchObject({ investments: [], streak: 0 });
  });
});
