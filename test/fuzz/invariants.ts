import fc from 'fast-check';
import { expect } from 'vitest';
import { adventures, live, noTally } from './conversation-fuzz.ts';

export const WITH_SYSTEM_MESSAGES = ['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-opus-4-8'];
export const WITHOUT_SYSTEM_MESSAGES = ['claude-sonnet-4-6', 'claude-haiku-4-5-20251001'];

export interface Share {
  /** Models that its conversations begin on. */
  readonly models: readonly string[];
  readonly enforceThinking: boolean;
  readonly seed: number;
}

/** A quarter of the generated conversations: the files of this folder share the cores. */
export async function keepsItsPromises({ models, enforceThinking, seed }: Share, numRuns = 2_500): Promise<void> {
  const tally = noTally();
  const property = fc.asyncProperty(adventures(models), (adventure) => live(adventure, enforceThinking, tally));
  await fc.assert(property, { numRuns, seed });
  // What was generated met what it is about.
  const share = numRuns / 2_500;
  expect(tally.prompts).toBeGreaterThan(numRuns);
  expect(tally.cuts).toBeGreaterThan(200 * share);
  expect(tally.roundCuts).toBeGreaterThan(50 * share);
  expect(tally.injections).toBeGreaterThan(400 * share);
  expect(tally.replays).toBeGreaterThan(800 * share);
}

export const TIMEOUT_MS = 1_800_000;
