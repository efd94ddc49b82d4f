import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { consentOf, MODES, SCOPES } from '../../../common/policy.ts';

const say = fc.record({ mode: fc.constantFrom(...MODES), scope: fc.constantFrom(...SCOPES) });

describe('consent', () => {
  it('is all there is where nobody says a word', () => {
    expect(consentOf([])).toEqual({ captures: true, adds: true, scope: 'all' });
  });

  it('recalls and takes nothing in where one says private, does neither where one says off', () => {
    expect(consentOf([{ mode: 'private', scope: 'project' }])).toEqual({
      captures: false,
      adds: true,
      scope: 'project',
    });
    expect(consentOf([{ mode: 'off', scope: 'all' }])).toEqual({ captures: false, adds: false, scope: 'all' });
  });

  it('is never widened by one more voice, in whatever order they speak', () => {
    fc.assert(
      fc.property(fc.array(say), say, (says, more) => {
        const [before, after] = [consentOf(says), consentOf([more, ...says])];
        expect(consentOf([...says, more])).toEqual(after);
        expect(after.captures && !before.captures).toBe(false);
        expect(after.adds && !before.adds).toBe(false);
        expect(SCOPES.indexOf(after.scope)).toBeLessThanOrEqual(SCOPES.indexOf(before.scope));
      }),
    );
  });
});
