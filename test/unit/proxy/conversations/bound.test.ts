import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { adventures, live, noTally } from '../../../helpers/wire/adventure.ts';

const RUNS = Number(process.env['RUNS'] ?? 2500);
describe('generated conversations', () => {
  it('keep', async () => {
    const tally = noTally();
    await fc.assert(
      fc.asyncProperty(adventures(['claude-opus-5-5', 'claude-sonnet-5-5']), async (adventure) => {
        await live(adventure, true, tally);
      }),
      { numRuns: RUNS, seed: Number(process.env['SEED'] ?? 20261122) },
    );
    console.log(tally);
    expect(tally.cuts).toBeGreaterThan(3);
  }, 600_000);
});
