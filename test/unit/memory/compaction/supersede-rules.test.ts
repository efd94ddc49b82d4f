import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PAIRS } from '../../../../bench/supersession/pairs.ts';
import { endsStatement, getEnding } from '../../../../memory/compaction/supersede-rules.ts';
import { CODE_POINT } from '../../../helpers/code-point.ts';

function ends(nextText: string, formerText: string): boolean {
  const ending = getEnding(nextText);
  return ending !== null && endsStatement(ending, formerText);
}

test('of the labeled pairs, what stays open is never ended, and nine of ten changes are found', () => {
  const [changed, kept] = [PAIRS.filter(({ closes }) => closes), PAIRS.filter(({ closes }) => !closes)];
  expect(kept.filter(({ former, next: said }) => ends(said, former))).toEqual([]);
  expect(changed.filter(({ former, next: said }) => ends(said, former)).length).toBeGreaterThan(changed.length * 0.9);
});

test('no statement ends itself, and any texts give a result', () => {
  const text = fc.oneof(fc.string({ unit: CODE_POINT }), fc.lorem());
  fc.assert(
    fc.property(text, text, (said, former) => {
      expect(ends(said, said)).toBe(false);
      expect(typeof ends(said, former)).toBe('boolean');
    }),
  );
});

test('only a value of the same attribute of the same thing is ended', () => {
  const thing = fc.constantFrom('staging database', 'cart service', 'mail queue', 'search API');
  const attribute = fc.constantFrom('port', 'timeout', 'retry limit', 'version');
  fc.assert(
    fc.property(thing, attribute, fc.nat(9_999), thing, attribute, fc.nat(9_999), (a, x, one, b, y, other) => {
      const isChange = a === b && x === y && one !== other;
      expect(ends(`The ${x} of the ${a} is now ${one}`, `The ${y} of the ${b} is ${other}`)).toBe(isChange);
      expect(ends(`The ${x} of the ${a} is ${one}`, `The ${y} of the ${b} is ${other}`)).toBe(isChange);
    }),
  );
});

test.each(['a', 'a ', 'not x, ', 'change x to ', 'instead of foo bar ', '不用', '"', 'is 1 '])(
  'a long text of %j is left alone in time',
  (piece) => {
    const long = piece.repeat(200_000);
    // The time limit of a test is the limit: a quadratic reader takes minutes.
    expect(getEnding(long)).toBeNull();
    expect(ends('The staging port is now 6432', long)).toBe(false);
    getEnding(long.slice(0, 400));
  },
);
