import { readFingerprints } from './certificates.ts';
import { createTrustStore, type RunCommand, runCommand, type TrustStore } from './trust-store.ts';

export interface NssTrustOptions {
  /** An existing database, usually `~/.pki/nssdb`. */
  readonly databaseDir: string;
  /** The certutil of NSS; Windows has another program of that name. */
  readonly certutil?: string;
  readonly run?: RunCommand;
}

/** The user's NSS database, which Chromium and others on Linux read instead of the system's store. */
export function createNssTrust(options: NssTrustOptions): TrustStore {
  const { certutil = 'certutil', run = runCommand } = options;
  const database = ['-d', `sql:${options.databaseDir}`];

  async function namesOf(fingerprint: string): Promise<string[]> {
    const names = nicknamesIn(await run([certutil, '-L', ...database]));
    const held: string[] = [];
    for (const name of names) {
      const pem = await run([certutil, '-L', ...database, '-n', name, '-a']);
      if (readFingerprints(`${pem}\n`).includes(fingerprint)) held.push(name);
    }
    return held;
  }

  return createTrustStore({
    id: 'nss',
    name: `NSS (${options.databaseDir})`,
    run,
    places: [options.databaseDir],
    installation: (rootFile, { fingerprint256 }) => [
      [certutil, '-A', ...database, '-t', 'C,,', '-n', nickname(fingerprint256), '-i', rootFile],
    ],
    removal: async (fingerprint) => ({
      commands: (await namesOf(fingerprint)).map((name) => [certutil, '-D', ...database, '-n', name]),
    }),
    isInstalled: async (fingerprint) => (await namesOf(fingerprint)).length > 0,
  });
}

/** Each root has a nickname of its own, because NSS merges two certificates with the same one. */
function nickname(fingerprint: string): string {
  return `comet-cc ${fingerprint.replaceAll(':', '').slice(0, 16).toLowerCase()}`;
}

/** The names that `certutil -L` prints: lines that end in three sets of trust flags. */
export function nicknamesIn(listing: string): string[] {
  const names = listing.split(/\r?\n/).map((line) => /^(.+?)\s+[a-zA-Z]*,[a-zA-Z]*,[a-zA-Z]*\s*$/.exec(line)?.[1]);
  return names.filter((name) => name !== undefined);
}
