import { describe, it } from 'vitest';
import { keepsItsPromises, TIMEOUT_MS, WITH_SYSTEM_MESSAGES } from './invariants.ts';

describe('2,500 generated conversations, preserved thinking off, begun on models with system messages', () => {
  it(
    'are refused nothing, keep the newest prompt and all that is not cut, and replay alike',
    { timeout: TIMEOUT_MS },
    () => keepsItsPromises({ models: WITH_SYSTEM_MESSAGES, enforceThinking: false, seed: 20261123 }),
  );
});
