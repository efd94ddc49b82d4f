import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createBest } from '../../../../memory/core/best.ts';

test('the best are those of a sort, ties by number, and no worse score is asked for', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 9 }), { maxLength: 80 }), fc.integer({ min: 1, max: 12 }), (scores, limit) => {
      const best = createBest(limit);
      for (const [id, score] of scores.entries()) best.add(id, score);
      const sorted = scores
        .map((score, id) => ({ id, score }))
        .sort((one, other) => other.score - one.score || one.id - other.id)
        .slice(0, limit);
      expect(best.sorted()).toEqual(sorted);
      expect(best.least()).toBe(scores.length < limit ? 0 : (sorted.at(-1)?.score ?? 0));
    }),
  );
});
