import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  chooseLinks,
  linkStrength,
  linkThresholds,
  MOST_LINKS,
  sharedTags,
  sharedWords,
} from '../../../../memory/compaction/linker.ts';

const share = fc.double({ min: 0, max: 1, noNaN: true });
const candidates = fc.uniqueArray(fc.record({ nodeId: fc.stringMatching(/^m\d{1,3}$/), strength: share }), {
  selector: ({ nodeId }) => nodeId,
  maxLength: 40,
});
const text = fc.array(fc.constantFrom('ledger', 'port', 'retry', 'queue', 'booking', 'the', 'yes'), { maxLength: 8 });
const weights = new Map([
  ['ledger', 3],
  ['port', 1],
  ['retry', 2],
  ['queue', 2],
  ['book', 1],
]);

describe('links', () => {
  it('are at most ten, all strong enough, and the strongest of those there are', () => {
    fc.assert(
      fc.property(candidates, share, (all, least) => {
        const chosen = chooseLinks(all, least);
        const strengthOf = new Map(all.map(({ nodeId, strength }) => [nodeId, strength]));
        const enough = all.filter(({ strength }) => strength >= least);
        expect(chosen).toHaveLength(Math.min(MOST_LINKS, enough.length));
        const weakest = Math.min(...chosen.map((id) => strengthOf.get(id) as number));
        expect(weakest).toBeGreaterThanOrEqual(least);
        for (const { nodeId, strength } of enough) {
          if (!chosen.includes(nodeId)) expect(strength).toBeLessThanOrEqual(weakest);
        }
      }),
    );
  });

  it('do not depend on the order in which candidates are found', () => {
    fc.assert(
      fc.property(candidates, share, (all, least) => {
        expect(chooseLinks(all.toReversed(), least)).toEqual(chooseLinks(all, least));
      }),
    );
  });

  it('weigh words and tags the same both ways, from 0 to 1', () => {
    fc.assert(
      fc.property(text, text, (one, other) => {
        for (const shared of [
          (a: string[], b: string[]) => sharedWords(new Set(a), [...new Set(b)], weights),
          (a: string[], b: string[]) => sharedTags(a, b),
        ]) {
          expect(shared(one, other)).toBeCloseTo(shared(other, one));
          expect(shared(one, other)).toBeGreaterThanOrEqual(0);
          expect(shared(one, other)).toBeLessThanOrEqual(1);
        }
      }),
    );
  });

  it('count a rare word for more than a common one, and words without weight for nothing', () => {
    expect(sharedWords(new Set(['ledger', 'port']), ['ledger', 'queue'], weights)).toBeGreaterThan(
      sharedWords(new Set(['ledger', 'port']), ['port', 'queue'], weights),
    );
    expect(sharedWords(new Set(['alpha']), ['alpha'], weights)).toBe(0);
  });

  it('do not come from tags that say what kind of memory it is', () => {
    expect(sharedTags(['FLAG:decision', 'queue'], ['FLAG:decision', 'labels'])).toBe(0);
    expect(sharedTags(['FLAG:decision', 'queue'], ['queue'])).toBe(1);
  });

  it('use words and tags alone without fitted vectors', () => {
    const near = { cosine: 1, words: 0, tags: 0 };
    for (const fit of [linkThresholds('an-endpoint-1024', false), linkThresholds('static-minilm-256-v2', true)]) {
      expect(linkStrength(near, fit)).toBe(0);
      expect(linkStrength({ cosine: 0, words: 1, tags: 1 }, fit)).toBeGreaterThan(fit.least);
    }
    const fitted = linkThresholds('static-minilm-256-v2', false);
    expect(linkStrength({ ...near, words: 0.5 }, fitted)).toBeGreaterThan(fitted.least);
  });
});
