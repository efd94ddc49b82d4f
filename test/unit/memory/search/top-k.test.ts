import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bestOf } from '../../../../memory/search/top-k.ts';

test('the best are those of a sort, ties by slot; what lies beyond the count is not looked at', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 9 }), { maxLength: 80 }), fc.nat({ max: 12 }), (drawn, limit) => {
      const slots = Uint32Array.from([...drawn.keys()].reverse());
      const candidates = { slots: Uint32Array.from([...slots, 999]), scores: Float64Array.from([...drawn, 99]) };
      const sorted = drawn
        .map((score, at) => ({ slot: slots[at], score }))
        .sort((one, other) => other.score - one.score || (one.slot as number) - (other.slot as number))
        .slice(0, limit);
      expect(bestOf(candidates, drawn.length, limit)).toEqual({
        slots: sorted.map(({ slot }) => slot),
        scores: sorted.map(({ score }) => score),
      });
    }),
  );
});
