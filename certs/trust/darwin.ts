import type { X509Certificate } from 'node:crypto';
import path from 'node:path';
import { readCertificates } from './certificates.ts';
import { createTrustStore, type Removal, type RunCommand, runCommand, type TrustStore } from './trust-store.ts';

export interface DarwinTrustOptions {
  /** A private directory for the file that `remove-trusted-cert` reads. */
  readonly workDir: string;
  readonly keychain?: string;
  readonly run?: RunCommand;
}

/** macOS: the System keychain, trusted for TLS only. */
export function createDarwinTrust(options: DarwinTrustOptions): TrustStore {
  const { workDir, keychain = '/Library/Keychains/System.keychain', run = runCommand } = options;

  async function found(fingerprint: string): Promise<X509Certificate | null> {
    const all = readCertificates(await run(['security', 'find-certificate', '-a', '-p', keychain]));
    return all.find(({ fingerprint256 }) => fingerprint256 === fingerprint) ?? null;
  }

  async function removal(fingerprint: string): Promise<Removal> {
    const root = await found(fingerprint);
    if (root === null) return { commands: [] };
    const sha1 = root.fingerprint.replaceAll(':', '');
    const file = path.join(workDir, `untrust-${sha1}.pem`);
    return {
      commands: [
        ['sudo', 'security', 'remove-trusted-cert', '-d', file],
        ['sudo', 'security', 'delete-certificate', '-Z', sha1, keychain],
      ],
      inputs: [{ file, text: root.toString() }],
    };
  }

  return createTrustStore({
    id: 'darwin',
    name: 'macOS (System keychain)',
    run,
    places: [keychain],
    installation: (rootFile) => [
      ['sudo', 'security', 'add-trusted-cert', '-d', '-p', 'ssl', '-p', 'basic', '-k', keychain, rootFile],
    ],
    removal,
    isInstalled: async (fingerprint) => (await found(fingerprint)) !== null,
  });
}
