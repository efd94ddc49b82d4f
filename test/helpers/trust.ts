import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { TrustStore } from '../../certs/index.ts';

export interface MemoryTrust extends TrustStore {
  /** SHA-256 of all that it holds. */
  readonly held: Set<string>;
}

/** A store in memory, which holds what it is told to. */
export function createMemoryTrust(id = 'memory'): MemoryTrust {
  const held = new Set<string>();
  const getFingerprint = (file: string): string => new X509Certificate(readFileSync(file)).fingerprint256;
  return {
    id,
    name: `the ${id} store`,
    held,
    describe: async (rootFile, former = []) => ({
      commands: [...former.map((fingerprint) => ['forget', fingerprint]), ['hold', rootFile]],
      fingerprint: getFingerprint(rootFile),
      files: [],
      certificate: '',
    }),
    install: async (rootFile, former = []) => {
      for (const fingerprint of former) held.delete(fingerprint);
      held.add(getFingerprint(rootFile));
    },
    remove: async (fingerprint) => held.delete(fingerprint),
    isInstalled: async (fingerprint) => held.has(fingerprint),
  };
}
