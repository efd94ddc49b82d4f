import { compactLocally, senseLocally } from '../core/extract.ts';
import type { LanguageModel } from '../ports.ts';

/** The floor under every other model: no process, no network, the same answer for the same turns. */
export function createLocalModel(): LanguageModel {
  return {
    name: 'local',
    sense: async (input, signal) => {
      signal.throwIfAborted();
      return senseLocally(input);
    },
    compact: async (input, signal) => {
      signal.throwIfAborted();
      return compactLocally(input);
    },
    close: async () => {},
  };
}
