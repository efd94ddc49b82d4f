import fc from 'fast-check';
import { expect, it } from 'vitest';
import { findClusters } from '../../../../memory/consolidation/choose-groups.ts';
import type { NodePair } from '../../../../memory/consolidation/choose-merges.ts';

const id = fc.constantFrom(...'abcdefghijkl');
const pairs: fc.Arbitrary<NodePair[]> = fc.array(
  fc.record({ left: id, right: id, similarity: fc.integer({ min: 0, max: 100 }).map((at) => at / 100) }),
  { maxLength: 40 },
);
const RULE = { minSize: 2, maxSize: 8 };

it('what hangs together is one cluster', () => {
  const near = (left: string, right: string, similarity: number): NodePair => ({ left, right, similarity });
  expect(
    findClusters([near('a', 'b', 0.9), near('c', 'b', 0.8), near('x', 'y', 0.7), near('z', 'z', 1)], RULE),
  ).toEqual([
    ['a', 'b', 'c'],
    ['x', 'y'],
  ]);
});

it('clusters keep to their sizes, share nothing, and every member is near another', () => {
  fc.assert(
    fc.property(pairs, (near) => {
      const clusters = findClusters(near, RULE);
      const all = clusters.flat();
      expect(new Set(all).size).toBe(all.length);
      for (const members of clusters) {
        expect(members.length).toBeGreaterThanOrEqual(2);
        expect(members.length).toBeLessThanOrEqual(8);
        for (const member of members) {
          const others = new Set(members.filter((each) => each !== member));
          const isNear = ({ left, right }: NodePair) =>
            (left === member && others.has(right)) || (right === member && others.has(left));
          expect(near.some(isNear)).toBe(true);
        }
      }
    }),
  );
});

it('neither the order of the pairs nor their sides matter', () => {
  fc.assert(
    fc.property(pairs, fc.integer(), (near, seed) => {
      const turned = near.map((pair, at) =>
        (seed >> (at % 30)) & 1 ? { ...pair, left: pair.right, right: pair.left } : pair,
      );
      expect(findClusters(turned.toReversed(), RULE)).toEqual(findClusters(near, RULE));
    }),
  );
});

it('with room for all, clusters are what can be reached', () => {
  fc.assert(
    fc.property(pairs, (near) => {
      const reached = (from: string): string[] => {
        const seen = new Set([from]);
        for (let size = 0; size !== seen.size; ) {
          size = seen.size;
          for (const { left, right } of near) {
            if (seen.has(left)) seen.add(right);
            if (seen.has(right)) seen.add(left);
          }
        }
        return [...seen].sort();
      };
      for (const members of findClusters(near, { minSize: 1, maxSize: 99 }))
        expect(members).toEqual(reached(members[0] ?? ''));
    }),
  );
});
