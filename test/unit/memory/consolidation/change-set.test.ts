import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalizeTags, canonicalTags, tagKey } from '../../../../memory/consolidation/change-set.ts';

const tag = fc.oneof(
  fc.constantFrom('test', 'tests', 'testing', 'Test', 'data-base', 'database', 'db', 'DB', 'FLAG:tests', 'api', 'apis'),
  fc.string({ maxLength: 8 }),
);
const tagged = fc.array(fc.array(tag, { maxLength: 4 }), { maxLength: 12 });

describe('forms of tags', () => {
  it('take the most used of what means the same', () => {
    const forms = canonicalTags([
      'tests',
      'tests',
      'test',
      'Testing',
      'db',
      'database',
      'database',
      'ci',
      'feature_flags',
      'feature-flag',
      'feature-flag',
    ]);
    expect(Object.fromEntries(forms)).toEqual({
      test: 'tests',
      Testing: 'tests',
      db: 'database',
      feature_flags: 'feature-flag',
    });
  });

  it('leave tags of an axis and what only looks alike alone', () => {
    expect(
      canonicalTags(['FLAG:decision', 'FLAG:decisions', 'redis', 'redi', 'class', 'clas', 'https', 'http']).size,
    ).toBe(0);
    expect(tagKey('analytics')).not.toBe(tagKey('analytic'));
  });

  it('a second time change nothing, and no node loses what its tags mean', () => {
    fc.assert(
      fc.property(tagged, (nodes) => {
        const forms = canonicalTags(nodes.flat());
        const once = nodes.map((tags) => canonicalizeTags(tags, forms));
        expect(canonicalTags(once.flat()).size).toBe(0);
        for (const [at, tags] of nodes.entries()) {
          const keys = (all: readonly string[]) =>
            new Set(all.map((each) => (each.includes(':') ? each : tagKey(each))));
          expect(keys(once[at] ?? [])).toEqual(keys(tags));
        }
      }),
    );
  });
});
