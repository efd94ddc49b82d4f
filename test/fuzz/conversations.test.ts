import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { noCounts, runScenario, type Scenario, scenarios } from './scenario.ts';

/** All four properties together; `npm run fuzz` runs 10,000. */
const WANTED = Number(process.env['COMET_FUZZ_CONVERSATIONS']);
const CONVERSATIONS = WANTED || 400;
/** A test run repeats; a search draws another one. */
const SEED = Number(process.env['COMET_TEST_SEED']) || (WANTED ? randomInt(1, 2 ** 31) : 9_107);
const NUM_RUNS = Math.ceil(CONVERSATIONS / 4);
const TIMEOUT_MS = 30_000 + NUM_RUNS * 500;

const MODELS = {
  'with system messages': ['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-opus-4-8'],
  'without system messages': ['claude-sonnet-4-6', 'claude-haiku-4-5-20251001'],
} as const;

/** A conversation that once broke an invariant. */
interface Counterexample {
  /** The invariant, and what broke it. */
  readonly reason: string;
  readonly enforceThinking: boolean;
  readonly scenario: Scenario;
}

const COUNTEREXAMPLES = path.join(import.meta.dirname, 'counterexamples');

async function checkConversations(models: readonly string[], enforceThinking: boolean): Promise<void> {
  console.log(`seed ${SEED}: repeat with COMET_TEST_SEED=${SEED}`);
  const counts = noCounts();
  const property = fc.asyncProperty(scenarios(models), (scenario) => runScenario(scenario, enforceThinking, counts));
  const { counterexample, errorInstance } = await fc.check(property, { numRuns: NUM_RUNS, seed: SEED });
  if (counterexample !== null) {
    const reason = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
    const fixture: Counterexample = { reason, enforceThinking, scenario: counterexample[0] };
    throw new Error(`keep as test/fuzz/counterexamples/NAME.json: ${JSON.stringify(fixture)}`, {
      cause: errorInstance,
    });
  }
  if (NUM_RUNS < 150) return;
  // The conversations must meet what the invariants are about; each bound is a third of the usual count at most.
  expect(counts.prompts / NUM_RUNS).toBeGreaterThan(1);
  expect(counts.cuts / NUM_RUNS).toBeGreaterThan(0.05);
  expect(counts.firstCuts / NUM_RUNS).toBeGreaterThan(0.05);
  expect(counts.mergedCuts / NUM_RUNS).toBeGreaterThan(0.05);
  expect(counts.roundCuts / NUM_RUNS).toBeGreaterThan(0.02);
  expect(counts.injections / NUM_RUNS).toBeGreaterThan(0.15);
  expect(counts.replays / NUM_RUNS).toBeGreaterThan(0.2);
}

// No request is refused; the newest prompt and everything that is not cut are sent; a retry is rewritten alike.
describe.each(Object.entries(MODELS))('generated conversations on models %s', (_, models) => {
  it('keep every invariant while preserved thinking is enforced', { timeout: TIMEOUT_MS }, () =>
    checkConversations(models, true),
  );

  it('keep every invariant while preserved thinking is off', { timeout: TIMEOUT_MS }, () =>
    checkConversations(models, false),
  );
});

it('every counterexample that was found before keeps every invariant', async () => {
  for (const name of readdirSync(COUNTEREXAMPLES).filter((file) => file.endsWith('.json'))) {
    const text = readFileSync(path.join(COUNTEREXAMPLES, name), 'utf8');
    const { scenario, enforceThinking } = JSON.parse(text) as Counterexample;
    await expect(runScenario(scenario, enforceThinking, noCounts()), name).resolves.toBeUndefined();
  }
});
