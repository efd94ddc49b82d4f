import { describe, expect, it } from 'vitest';
import { cutCost } from '../../../../proxy/rewrite/cut-cost.ts';
import type { TurnSpan } from '../../../../proxy/wire/split-turns.ts';

const keep = { keepTurns: 3, keepTokens: 0 };
const prices = { read: 0.05, write: 2 };

const turnsOf = (count: number, tokens: number, requests: number): TurnSpan[] =>
  Array.from({ length: count }, (_, index) => ({
    start: index,
    end: index + 1,
    key: `k${index}`,
    endHash: `e${index}`,
    tokens,
    requests,
  }));

describe('what a cut costs', () => {
  it('is the kept part, written instead of read', () => {
    expect(cutCost({ turns: turnsOf(5, 1_000, 1), absorbed: 0, rewrittenTokens: 40_000, prices }, keep).once).toBe(
      78_000,
    );
  });

  it('is set against what the droppable turns cost to read, each request of each turn', () => {
    // With turn 5 one turn may go, with turn 6 two: 2 requests at 1,000 and 2 at 2,000.
    const { carried } = cutCost({ turns: turnsOf(6, 1_000, 2), absorbed: 0, rewrittenTokens: 0, prices }, keep);
    expect(carried).toBeCloseTo(0.05 * (2 * 1_000 + 2 * 2_000));
  });

  it('starts from nothing after a cut', () => {
    expect(cutCost({ turns: turnsOf(6, 1_000, 2), absorbed: 2, rewrittenTokens: 0, prices }, keep).carried).toBe(0);
  });

  it('of a steady history is met after the period that costs least in the long run', () => {
    const rewrittenTokens = 4_000;
    const cost = (period: number): number => {
      const carried = cutCost({ turns: turnsOf(period + 3, 1_000, 8), absorbed: 0, rewrittenTokens, prices }, keep);
      return (carried.once + carried.carried) / period;
    };
    const periods = Array.from({ length: 40 }, (_, index) => index + 1);
    const best = periods.reduce((a, b) => (cost(a) <= cost(b) ? a : b));
    const chosen = periods.find((period) => {
      const { once, carried } = cutCost(
        { turns: turnsOf(period + 3, 1_000, 8), absorbed: 0, rewrittenTokens, prices },
        keep,
      );
      return carried >= once;
    }) as number;
    expect(cost(chosen)).toBeLessThan(1.05 * cost(best));
  });
});
