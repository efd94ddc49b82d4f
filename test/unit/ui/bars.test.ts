import fc from 'fast-check';
import { expect, it } from 'vitest';
import { barLength, contextBar, phaseBar } from '../../../ui/bars.ts';

it('shows what was trimmed from a context and what was recalled into it', () => {
  const context = { received_tokens: 1_000, sent_tokens: 600, recalled_tokens: 50 };
  expect(contextBar(context, 1_100)).toEqual([
    { name: 'sent', tokens: 550, percent: 50 },
    { name: 'recalled', tokens: 50, percent: expect.closeTo(4.545, 2) },
    { name: 'trimmed', tokens: 450, percent: expect.closeTo(40.91, 2) },
  ]);
});

it('shows what memory added beyond what came in', () => {
  const parts = contextBar({ received_tokens: 100, sent_tokens: 130, recalled_tokens: 10 }, 130);
  expect(parts.map(({ name, tokens }) => [name, tokens])).toEqual([
    ['sent', 100],
    ['recalled', 10],
    ['added', 20],
  ]);
});

it('adds up to what was sent, and to what was received', () => {
  const tokens = fc.nat(200_000);
  fc.assert(
    fc.property(tokens, tokens, tokens, (received_tokens, sent_tokens, recalled_tokens) => {
      const context = { received_tokens, sent_tokens, recalled_tokens };
      const of = (name: string): number => contextBar(context, 1).find((part) => part.name === name)?.tokens ?? 0;
      expect(of('sent') + of('recalled') + of('added')).toBe(sent_tokens);
      expect(of('sent') + of('trimmed')).toBe(received_tokens);
      const all = contextBar(context, barLength(context)).reduce((sum, { percent }) => sum + percent, 0);
      expect(all).toBeCloseTo(barLength(context) === 0 ? 0 : 100, 6);
    }),
  );
});

it('gives each phase its share of the time', () => {
  const phases = phaseBar([
    { name: 'recall', ms: 30 },
    { name: 'answer', ms: 90 },
  ]);
  expect(phases.map(({ percent }) => percent)).toEqual([25, 75]);
  expect(phaseBar([{ name: 'recall', ms: 0 }])[0]?.percent).toBe(0);
});
