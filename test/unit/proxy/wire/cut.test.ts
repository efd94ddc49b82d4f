import { describe, expect, it } from 'vitest';
import { decideCut } from '../../../../proxy/wire/cut.ts';
import type { TurnSpan } from '../../../../proxy/wire/turns.ts';

const rule = { triggerTokens: 10_000, keepTurns: 3, keepTokens: 2_000, minDropShare: 0.5 };

const turnsOf = (...tokens: number[]): TurnSpan[] =>
  tokens.map((size, index) => ({
    start: index * 2,
    end: index * 2 + 2,
    key: `k${index}`,
    endHash: `e${index}`,
    tokens: size,
  }));

const all = () => true;

describe('the size rule', () => {
  it('keeps a history that is small', () => {
    expect(decideCut({ turns: turnsOf(100, 100, 100, 100, 100, 10), absorbed: 0, isDurable: all }, rule)).toEqual({
      kind: 'keep',
      because: 'small',
    });
  });

  it('leaves the newest three complete turns and the prompt', () => {
    const turns = turnsOf(5_000, 5_000, 1_000, 1_000, 1_000, 10);
    expect(decideCut({ turns, absorbed: 0, isDurable: all }, rule)).toMatchObject({
      kind: 'cut',
      through: 2,
      droppedTokens: 10_000,
    });
  });

  it('leaves more turns where three are short of the tokens to keep', () => {
    const turns = turnsOf(9_000, 5_000, 1_500, 100, 100, 100, 10);
    expect(decideCut({ turns, absorbed: 0, isDurable: all }, rule)).toMatchObject({ kind: 'cut', through: 1 });
  });

  it('cuts only through turns that durable nodes stand for', () => {
    const turns = turnsOf(9_000, 5_000, 5_000, 1_000, 1_000, 1_000, 10);
    const isDurable = (turn: TurnSpan) => turn.endHash === 'e0' || turn.endHash === 'e2';
    expect(decideCut({ turns, absorbed: 0, isDurable }, rule)).toEqual({ kind: 'keep', because: 'not_durable' });
    expect(decideCut({ turns: turnsOf(20_000, 10, 500, 500, 1_000, 10), absorbed: 0, isDurable }, rule)).toMatchObject({
      through: 1,
    });
  });

  it('counts what is absorbed already as gone, and does not cut for little', () => {
    const turns = turnsOf(90_000, 3_000, 4_000, 4_000, 4_000, 10);
    expect(decideCut({ turns, absorbed: 1, isDurable: all }, rule)).toEqual({ kind: 'keep', because: 'too_little' });
  });

  it('never cuts a conversation of few turns, however long they are', () => {
    const turns = turnsOf(90_000, 90_000, 90_000, 10);
    expect(decideCut({ turns, absorbed: 0, isDurable: all }, rule)).toEqual({ kind: 'keep', because: 'too_few_turns' });
  });
});
