import type { X509Certificate } from 'node:crypto';
import { readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { CometError } from '../../common/errors.ts';
import { ensureDir, readFileIfPresent, writeFileAtomic } from '../../common/files.ts';
import { readBase64Lines, readCertificates, readFingerprints, readRoot } from '../store.ts';

/** A program and its arguments; never a line for a shell. */
export type Argv = readonly string[];

/** Returns the stdout of a command. @throws CometError `trust_failed` */
type RunCommand = (argv: Argv) => Promise<string>;

export const runCommand: RunCommand = async (argv) => {
  const runner = await import('../../common/run-process.ts');
  return runner.runCommand(argv, { code: 'trust_failed', timeoutMs: 120_000 });
};

export interface TrustPlan {
  /** The exact commands, in order, as argument lists. */
  readonly commands: readonly Argv[];
  /** SHA-256 of the root. */
  readonly fingerprint: string;
  /** What the system has afterwards. */
  readonly files: readonly string[];
  /** The root as OpenSSL-style text for the user: subject, expiry, constraint. */
  readonly certificate: string;
}

/** A certificate store of this machine. Only `install` and `remove` change it. */
export interface TrustStore {
  /** Short and stable: installed roots are recorded under it. */
  readonly id: string;
  readonly name: string;
  /**
   * @param former  SHA-256 of older roots, which `rootFile` replaces
   * @throws CometError `ca_unreadable` when there is no root
   */
  describe(rootFile: string, former?: readonly string[]): Promise<TrustPlan>;
  /** @throws CometError `trust_failed` when a command fails or the root is not there afterwards */
  install(rootFile: string, former?: readonly string[]): Promise<void>;
  /** False when it was not there. @throws CometError `trust_failed` when it is still there afterwards */
  remove(fingerprint: string): Promise<boolean>;
  /** Reads the store itself. */
  isInstalled(fingerprint: string): Promise<boolean>;
}

export interface Removal {
  /** None where the store does not have the certificate. */
  readonly commands: readonly Argv[];
  /** Files that the commands read; removed after them. */
  readonly inputs?: readonly { readonly file: string; readonly text: string }[];
}

/** What differs from store to store. Only `run` changes anything. */
interface StoreSpec {
  readonly id: string;
  readonly name: string;
  readonly run: RunCommand;
  /** Where the certificate will be, as text for the user: files, a keychain, a database. */
  readonly places: readonly string[];
  installation(rootFile: string, root: X509Certificate): readonly Argv[];
  removal(fingerprint: string): Promise<Removal>;
  isInstalled(fingerprint: string): Promise<boolean>;
  /** Why installing would overwrite a certificate that is not among `allowed`; null when it would not. */
  obstacle?(allowed: readonly string[]): Promise<string | null>;
}

function createTrustStore(spec: StoreSpec): TrustStore {
  async function describe(rootFile: string, former: readonly string[] = []): Promise<TrustPlan> {
    const root = await readRoot(rootFile);
    const removals = await Promise.all(former.map((fingerprint) => spec.removal(fingerprint)));
    return {
      commands: [...removals.flatMap(({ commands }) => commands), ...spec.installation(rootFile, root)],
      fingerprint: root.fingerprint256,
      files: spec.places,
      certificate: `${root.subject}, valid until ${root.validTo}`,
    };
  }

  async function install(rootFile: string, former: readonly string[] = []): Promise<void> {
    const root = await readRoot(rootFile);
    const obstacle = (await spec.obstacle?.([root.fingerprint256, ...former])) ?? null;
    if (obstacle !== null) throw new CometError('trust_failed', obstacle);
    for (const fingerprint of former) await remove(fingerprint);
    for (const command of spec.installation(rootFile, root)) await spec.run(command);
    if (!(await spec.isInstalled(root.fingerprint256))) {
      throw new CometError('trust_failed', `${spec.name} does not have the root, though every command succeeded`);
    }
  }

  async function remove(fingerprint: string): Promise<boolean> {
    const { commands, inputs = [] } = await spec.removal(fingerprint);
    if (commands.length === 0) return false;
    try {
      for (const { file, text } of inputs) {
        await ensureDir(path.dirname(file));
        await writeFileAtomic(file, text);
      }
      for (const command of commands) await spec.run(command);
    } finally {
      for (const { file } of inputs) await rm(file, { force: true });
    }
    if (await spec.isInstalled(fingerprint)) {
      throw new CometError('trust_failed', `${spec.name} still has the certificate ${fingerprint}; remove it by hand`);
    }
    return true;
  }

  const isInstalled = (fingerprint: string): Promise<boolean> => spec.isInstalled(fingerprint);
  return { id: spec.id, name: spec.name, describe, install, remove, isInstalled };
}

interface LinuxTrustOptions {
  /** `/`, or a directory with the same layout. */
  readonly sysroot: string;
  /** Whether commands need sudo; by default when the process is not root. */
  readonly sudo?: boolean;
  /** The program that updates the store, where it is not to be found in PATH. */
  readonly program?: string;
}

/** A store that is a folder of anchor files and a command that makes bundles of it. */
interface AnchorStore {
  readonly id: string;
  readonly name: string;
  readonly anchorsDir: string;
  /** Name of the root's file in `anchorsDir`. */
  readonly file: string;
  /** Made by the commands; read to see what is trusted. */
  readonly bundles: readonly string[];
  readonly afterInstall: Argv;
  readonly afterRemoval: Argv;
}

/** Arch Linux: the anchors of p11-kit. */
export function createArchTrust({ sysroot, sudo, program = 'trust' }: LinuxTrustOptions): TrustStore {
  const extract = [program, 'extract-compat'];
  const store: AnchorStore = {
    id: 'arch',
    name: 'Arch Linux (trust extract-compat)',
    anchorsDir: path.join(sysroot, 'etc/ca-certificates/trust-source/anchors'),
    file: 'comet-cc.crt',
    bundles: [path.join(sysroot, 'etc/ca-certificates/extracted/tls-ca-bundle.pem')],
    afterInstall: extract,
    afterRemoval: extract,
  };
  return createAnchorTrust(store, sudo);
}

/** Debian and Ubuntu: the local directory of `update-ca-certificates`. */
export function createDebianTrust({ sysroot, sudo }: LinuxTrustOptions): TrustStore {
  const at = (name: string): string => path.join(sysroot, name);
  const folders = [
    ...['--certsconf', at('etc/ca-certificates.conf')],
    ...['--certsdir', at('usr/share/ca-certificates')],
    ...['--localcertsdir', at('usr/local/share/ca-certificates')],
    ...['--etccertsdir', at('etc/ssl/certs')],
    ...['--hooksdir', at('etc/ca-certificates/update.d')],
  ];
  const update = ['update-ca-certificates', ...(sysroot === '/' ? [] : folders)];
  const store: AnchorStore = {
    id: 'debian',
    name: 'Debian and Ubuntu (update-ca-certificates)',
    anchorsDir: at('usr/local/share/ca-certificates'),
    file: 'comet-cc.crt',
    bundles: [at('etc/ssl/certs/comet-cc.pem'), at('etc/ssl/certs/ca-certificates.crt')],
    afterInstall: update,
    // Without --fresh, links by hash to a removed certificate stay.
    afterRemoval: [...update, '--fresh'],
  };
  return createAnchorTrust(store, sudo);
}

/** Fedora, RHEL and derivatives: the anchors of `update-ca-trust`. */
export function createFedoraTrust({ sysroot, sudo, program = 'update-ca-trust' }: LinuxTrustOptions): TrustStore {
  const update = [program, 'extract'];
  const store: AnchorStore = {
    id: 'fedora',
    name: 'Fedora and RHEL (update-ca-trust)',
    anchorsDir: path.join(sysroot, 'etc/pki/ca-trust/source/anchors'),
    file: 'comet-cc.pem',
    bundles: [path.join(sysroot, 'etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem')],
    afterInstall: update,
    afterRemoval: update,
  };
  return createAnchorTrust(store, sudo);
}

function createAnchorTrust(store: AnchorStore, needsSudo = process.getuid?.() !== 0): TrustStore {
  const anchor = path.join(store.anchorsDir, store.file);
  const sudo = needsSudo ? ['sudo'] : [];

  async function removal(fingerprint: string): Promise<Removal> {
    const files = await anchorsWith(fingerprint);
    if (files.length === 0 && !(await isInstalled(fingerprint))) return { commands: [] };
    const deletions = files.map((file) => [...sudo, 'rm', '-f', '--', file]);
    return { commands: [...deletions, [...sudo, ...store.afterRemoval]] };
  }

  async function isInstalled(fingerprint: string): Promise<boolean> {
    for (const bundle of store.bundles) {
      if (readFingerprints((await readFileIfPresent(bundle)) ?? '').includes(fingerprint)) return true;
    }
    return (await anchorsWith(fingerprint)).length > 0;
  }

  async function obstacle(allowed: readonly string[]): Promise<string | null> {
    const present = await readFileIfPresent(anchor);
    if (present === null || readFingerprints(present).some((found) => allowed.includes(found))) return null;
    return `${anchor} holds a certificate that this home did not install; if it is yours, remove it and try again`;
  }

  // Only files with that certificate alone: a bundle of the user must not be deleted.
  async function anchorsWith(fingerprint: string): Promise<string[]> {
    const names = await readdir(store.anchorsDir).catch(() => []);
    const files = names.filter((name) => /\.(crt|pem)$/.test(name)).map((name) => path.join(store.anchorsDir, name));
    const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')));
    return files.filter((_, i) => readFingerprints(texts[i] ?? '').join() === fingerprint);
  }

  return createTrustStore({
    id: store.id,
    name: store.name,
    run: runCommand,
    places: [anchor, ...store.bundles],
    installation: (rootFile) => [
      [...sudo, 'install', '-D', '-m', '0644', rootFile, anchor],
      [...sudo, ...store.afterInstall],
    ],
    removal,
    isInstalled,
    obstacle,
  });
}

interface DarwinTrustOptions {
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

interface WindowsTrustOptions {
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

interface NssTrustOptions {
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
