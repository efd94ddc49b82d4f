import type { X509Certificate } from 'node:crypto';
import { readBase64Lines } from './certificates.ts';
import { type Argv, createTrustStore, type RunCommand, runCommand, type TrustStore } from './trust-store.ts';

export interface WindowsTrustOptions {
  readonly run?: RunCommand;
}

/** Not `certutil -store`, whose output is translated. */
const LIST: Argv = [
  'powershell.exe',
  '-NoProfile',
  '-NonInteractive',
  '-Command',
  'Get-ChildItem Cert:\\CurrentUser\\Root | ForEach-Object { [Convert]::ToBase64String($_.RawData) }',
];

/** Windows: the root store of the current user, which needs no administrator. */
export function createWindowsTrust({ run = runCommand }: WindowsTrustOptions = {}): TrustStore {
  async function found(fingerprint: string): Promise<X509Certificate | null> {
    const all = readBase64Lines(await run(LIST));
    return all.find(({ fingerprint256 }) => fingerprint256 === fingerprint) ?? null;
  }

  return createTrustStore({
    id: 'windows',
    name: 'Windows (root store of the current user)',
    run,
    places: ['Cert:\\CurrentUser\\Root'],
    installation: (rootFile) => [['certutil', '-user', '-addstore', 'Root', rootFile]],
    removal: async (fingerprint) => {
      const root = await found(fingerprint);
      return { commands: root === null ? [] : [['certutil', '-user', '-delstore', 'Root', root.serialNumber]] };
    },
    isInstalled: async (fingerprint) => (await found(fingerprint)) !== null,
  });
}
