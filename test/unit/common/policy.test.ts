import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { effectivePolicy, MODES, SCOPES } from '../../../common/policy.ts';

const say = fc.record({ mode: fc.constantFrom(...MODES), scope: fc.constantFrom(...SCOPES) });

describe('consent', () => {
  it('applies when no source restricts it', () => {
    expect(effectivePolicy([])).toEqual({ captures: true, adds: true, scope: 'all' });
  });

  it('recalls and takes nothing in where one says private, does neither where one says off', () => {
    expect(effectivePolicy([{ mode: 'private', scope: 'project' }])).toEqual({
      captures: false,
      adds: true,
      scope: 'project',
    });
    expect(effectivePolicy([{ mode: 'off', scope: 'all' }])).toEqual({ captures: false, adds: false, scope: 'all' });
  });

  it('is never widened by another source, in any order', () => {
    fc.assert(
      fc.property(fc.array(say), say, (says, more) => {
        const [before, after] = [effectivePolicy(says), effectivePolicy([more, ...says])];
        expect(effectivePolicy([...says, more])).toEqual(after);
        expect(after.captures && !before.captures).toBe(false);
        expect(after.adds && !before.adds).toBe(false);
        expect(SCOPES.indexOf(after.scope)).toBeLessThanOrEqual(SCOPES.indexOf(before.scope));
      }),
    );
  });
});
