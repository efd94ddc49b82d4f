import { describe, it } from 'vitest';
import { keepsItsPromises, TIMEOUT_MS, WITHOUT_SYSTEM_MESSAGES } from './invariants.ts';

describe('2,500 generated conversations, preserved thinking enforced, begun on models without system messages', () => {
  it(
    'are refused nothing, keep the newest prompt and all that is not cut, and replay alike',
    { timeout: TIMEOUT_MS },
    () => keepsItsPromises({ models: WITHOUT_SYSTEM_MESSAGES, enforceThinking: true, seed: 20261122 }),
  );
});
