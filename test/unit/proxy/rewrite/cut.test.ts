import { describe, expect, it } from 'vitest';
import { decideCut } from '../../../../proxy/rewrite/cut.ts';
import type { TurnSpan } from '../../../../proxy/wire/split-turns.ts';

const rule = {
  margin: 0,
  pressureShare: 0.8,
  triggerTokens: 10_000,
  keepTurns: 3,
  keepTokens: 2_000,
  minDropShare: 0.5,
  targetTokens: 0,
  keepRounds: 6,
  keepRoundTokens: 4_000,
  roundMargin: 1,
};

const turnsOf = (...tokens: number[]): TurnSpan[] =>
  tokens.map((size, index) => ({
    start: index * 2,
    end: index * 2 + 2,
    key: `k${index}`,
    endHash: `e${index}`,
    tokens: size,
    requests: 4,
  }));

const all = () => true;
const countHeld = (turns: readonly TurnSpan[]) => ({ turns: turns.length, extraTokens: 0 });

const context = {
  cold: false,
  prices: { read: 0.1, write: 1.25 },
  aroundTokens: 2_000,
  requestTokens: 50_000,
  contextTokens: 200_000,
};

describe('the size rule', () => {
  it('keeps a history that is small', () => {
    expect(
      decideCut({ turns: turnsOf(100, 100, 100, 100, 100, 10), absorbed: 0, context, isDurable: all, countHeld }, rule),
    ).toEqual({
      kind: 'keep',
      because: 'small',
    });
  });

  it('leaves the newest three complete turns and the prompt', () => {
    const turns = turnsOf(5_000, 5_000, 1_000, 1_000, 1_000, 10);
    expect(decideCut({ turns, absorbed: 0, context, isDurable: all, countHeld }, rule)).toMatchObject({
      kind: 'cut',
      through: 2,
      droppedTokens: 10_000,
    });
  });

  it('leaves more turns where three are short of the tokens to keep', () => {
    const turns = turnsOf(9_000, 5_000, 1_500, 100, 100, 100, 10);
    expect(decideCut({ turns, absorbed: 0, context, isDurable: all, countHeld }, rule)).toMatchObject({
      kind: 'cut',
      through: 1,
    });
  });

  it('cuts only through turns that durable nodes stand for', () => {
    const turns = turnsOf(9_000, 5_000, 5_000, 1_000, 1_000, 1_000, 10);
    const isDurable = (turn: TurnSpan) => turn.endHash === 'e0' || turn.endHash === 'e2';
    expect(decideCut({ turns, absorbed: 0, context, isDurable, countHeld }, rule)).toEqual({
      kind: 'keep',
      because: 'not_durable',
    });
    expect(
      decideCut({ turns: turnsOf(20_000, 10, 500, 500, 1_000, 10), absorbed: 0, context, isDurable, countHeld }, rule),
    ).toMatchObject({
      through: 1,
    });
  });

  it('counts what is absorbed already as gone, and does not cut for little', () => {
    const turns = turnsOf(90_000, 3_000, 4_000, 4_000, 4_000, 10);
    expect(decideCut({ turns, absorbed: 1, context, isDurable: all, countHeld }, rule)).toEqual({
      kind: 'keep',
      because: 'too_little',
    });
  });

  it('never cuts a conversation of few turns, however long they are', () => {
    const turns = turnsOf(90_000, 90_000, 90_000, 10);
    expect(decideCut({ turns, absorbed: 0, context, isDurable: all, countHeld }, rule)).toEqual({
      kind: 'keep',
      because: 'too_few_turns',
    });
  });

  it('keeps the turns whose state no preamble can hold', () => {
    const turns = turnsOf(5_000, 5_000, 5_000, 1_000, 1_000, 1_000, 10);
    const holding = (most: number, extraTokens = 0) => ({
      ...{ turns, absorbed: 1, context, isDurable: all },
      countHeld: () => ({ turns: most, extraTokens }),
    });
    expect(decideCut(holding(3), rule)).toMatchObject({ kind: 'cut', through: 3 });
    expect(decideCut(holding(2), { ...rule, minDropShare: 0.2 })).toMatchObject({ kind: 'cut', through: 2 });
    expect(decideCut(holding(2), { ...rule, minDropShare: 0.6 })).toEqual({ kind: 'keep', because: 'too_much_state' });
    expect(decideCut(holding(1), rule)).toEqual({ kind: 'keep', because: 'too_much_state' });
    expect(decideCut(holding(3), { ...rule, margin: 0.5 })).toMatchObject({ because: 'paid' });
    expect(decideCut(holding(3, 90_000), { ...rule, margin: 0.5 })).toEqual({ kind: 'keep', because: 'not_paid' });
  });

  it('cuts a request above the target, however small its history', () => {
    const turns = turnsOf(2_000, 2_000, 500, 1_000, 1_000, 10);
    const input = { turns, absorbed: 0, context, isDurable: all, countHeld };
    const patient = { ...rule, margin: 1 };
    expect(decideCut(input, { ...patient, targetTokens: 60_000 })).toMatchObject({ because: 'small' });
    expect(decideCut(input, { ...patient, targetTokens: 40_000 })).toMatchObject({ because: 'target', through: 2 });
  });

  describe('with a margin', () => {
    const patient = { ...rule, margin: 1 };
    const turns = turnsOf(5_000, 5_000, 5_000, 1_000, 1_000, 1_000, 10);
    const input = { turns, absorbed: 0, isDurable: all, countHeld, context };

    it('waits until what could have gone has cost as much as the cut', () => {
      // Writing 3,010 and what is around them anew costs 1.15 × 5,010. Carried: 5,000, 10,000 and 15,000 at 0.1.
      const calm = turns.map((turn) => ({ ...turn, requests: 1 }));
      expect(decideCut({ ...input, turns: calm }, patient)).toEqual({ kind: 'keep', because: 'not_paid' });
      expect(decideCut(input, patient)).toMatchObject({ kind: 'cut', because: 'paid' });
    });

    it('takes a cold cache for the free moment that it is', () => {
      expect(decideCut({ ...input, context: { ...context, cold: true } }, patient)).toMatchObject({ because: 'cold' });
    });

    it('waits for nothing when the window is nearly full', () => {
      const full = { ...context, requestTokens: 170_000 };
      expect(decideCut({ ...input, context: full }, patient)).toMatchObject({ because: 'pressure' });
    });
  });
});
