import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createCompactSet } from '../../../../memory/text/compact-set.ts';

const integers = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
/** Dense enough that values collide. */
const values = fc.array(fc.oneof(integers, fc.integer({ min: -300, max: 300 })), { maxLength: 500 });

it('below its limit it is a set, in which zero and one are the same', () => {
  fc.assert(
    fc.property(values, values, (added, asked) => {
      const set = createCompactSet(10_000);
      for (const value of added) set.add(value);
      const expected = new Set(added.map((value) => value || 1));
      expect(set.size).toBe(expected.size);
      for (const value of [...added, ...asked]) expect(set.has(value)).toBe(expected.has(value || 1));
    }),
  );
});

it('at its limit it keeps the latest half', () => {
  const most = 100;
  fc.assert(
    fc.property(fc.uniqueArray(integers.filter(Boolean), { minLength: 300, maxLength: 400 }), (added) => {
      const set = createCompactSet(most);
      for (const value of added) set.add(value);
      expect(set.size).toBeLessThanOrEqual(most);
      for (const value of added.slice(-most / 2)) expect(set.has(value)).toBe(true);
      for (const value of added.slice(0, -most)) expect(set.has(value)).toBe(false);
    }),
  );
});
