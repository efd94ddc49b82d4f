import type { X509Certificate } from 'node:crypto';
import { readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { CometError } from '../../common/errors.ts';
import { readFileIfPresent, writePrivateFile } from '../../common/files.ts';
import { readCertificates, readFingerprints, readRoot } from '../store.ts';

/** A program and its arguments; never a line for a shell. */
export type Argv = readonly string[];

/** Returns the stdout of a command. @throws CometError `trust_failed` */
type RunCommand = (argv: Argv) => Promise<string>;

export const runCommand: RunCommand = async (argv) => {
  const runner = await import('../../common/run-process.ts');
  return runner.runCommand(argv, { code: 'trust_failed', timeoutMs: 120_000 });
};

/** A certificate store of this machine. Only `install` and `remove` change it. */
export type TrustStore = ReturnType<typeof createTrustStore>;
export type TrustPlan = Awaited<ReturnType<TrustStore['describe']>>;

interface Removal {
  /** None where the store does not have the certificate. */
  readonly commands: readonly Argv[];
  /** Files that the commands read; removed after them. */
  readonly inputs?: readonly { readonly file: string; readonly text: string }[];
}

/** What differs from store to store. Only `run` changes anything. */
interface StoreSpec {
  /** Short and stable: installed roots are recorded under it. */
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

function createTrustStore(spec: StoreSpec) {
  /**
   * @param former  SHA-256 of older roots, which `rootFile` replaces
   * @throws CometError `ca_unreadable` when there is no root
   */
  async function describe(rootFile: string, former: readonly string[] = []) {
    const root = await readRoot(rootFile);
    const removals = await Promise.all(former.map((fingerprint) => spec.removal(fingerprint)));
    return {
      /** The exact commands, in order, as argument lists. */
      commands: [...removals.flatMap(({ commands }) => commands), ...spec.installation(rootFile, root)],
      fingerprint: root.fingerprint256,
      /** What the system has afterwards. */
      files: spec.places,
      /** The root as text for the user: subject, expiry. */
      certificate: `${root.subject}, valid until ${root.validTo}`,
    };
  }

  /** @throws CometError `trust_failed` when a command fails or the root is not there afterwards */
  async function install(rootFile: string, former: readonly string[] = []): Promise<void> {
    const root = await readRoot(rootFile);
    const obstacle = (await spec.obstacle?.([root.fingerprint256, ...former])) ?? null;
    if (obstacle !== null) throw new CometError('trust_failed', obstacle);
    for (const fingerprint of former) await remove(fingerprint);
    for (const command of spec.installation(rootFile, root)) await spec.run(command);
    if (!(await spec.isInstalled(root.fingerprint256)))
      throw new CometError('trust_failed', `${spec.name} does not have the root, though every command succeeded`);
  }

  /** False when it was not there. @throws CometError `trust_failed` when it is still there afterwards */
  async function remove(fingerprint: string): Promise<boolean> {
    const { commands, inputs = [] } = await spec.removal(fingerprint);
    if (commands.length === 0) return false;
    try {
      for (const { file, text } of inputs) await writePrivateFile(file, text);
      for (const command of commands) await spec.run(command);
    } finally {
      for (const { file } of inputs) await rm(file, { force: true });
    }
    if (await spec.isInstalled(fingerprint))
      throw new CometError('trust_failed', `${spec.name} still has the certificate ${fingerprint}; remove it by hand`);
    return true;
  }

  return { id: spec.id, name: spec.name, describe, install, remove, isInstalled: spec.isInstalled };
}

interface AnchorOptions {
  /** `/`, or a directory with the same layout. */
  readonly sysroot: string;
  /** Whether commands need sudo; by default when the process is not root. */
  readonly sudo?: boolean;
  /** The program that updates the store, where it is not to be found in PATH. */
  readonly program?: string;
}

/** Linux systems: a folder of anchor files, and a command that makes bundles of them. */
const ANCHORS = {
  arch: {
    name: 'Arch Linux (trust extract-compat)',
    anchor: 'etc/ca-certificates/trust-source/anchors/comet-cc.crt',
    bundles: ['/etc/ca-certificates/extracted/tls-ca-bundle.pem'],
    update: ['trust', 'extract-compat'],
    onRemoval: [],
  },
  debian: {
    name: 'Debian and Ubuntu (update-ca-certificates)',
    anchor: 'usr/local/share/ca-certificates/comet-cc.crt',
    bundles: ['/etc/ssl/certs/comet-cc.pem', '/etc/ssl/certs/ca-certificates.crt'],
    update: ['update-ca-certificates'],
    // Links by hash to a removed certificate would stay.
    onRemoval: ['--fresh'],
  },
  fedora: {
    name: 'Fedora and RHEL (update-ca-trust)',
    anchor: 'etc/pki/ca-trust/source/anchors/comet-cc.pem',
    bundles: ['/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem'],
    update: ['update-ca-trust', 'extract'],
    onRemoval: [],
  },
} as const;

export const BUNDLES: readonly string[] = Object.values(ANCHORS).flatMap(({ bundles }) => bundles);

export function createAnchorTrust(id: keyof typeof ANCHORS, options: AnchorOptions): TrustStore {
  const { sysroot, sudo: needsSudo = process.getuid?.() !== 0, program } = options;
  const { name, update, onRemoval, ...files } = ANCHORS[id];
  const at = (file: string): string => path.join(sysroot, file);
  const anchor = at(files.anchor);
  const anchorsDir = path.dirname(anchor);
  const bundles = files.bundles.map(at);
  const updating = [program ?? update[0], ...update.slice(1)];
  const sudo = needsSudo ? ['sudo'] : [];

  async function removal(fingerprint: string): Promise<Removal> {
    const files = await addAnchors(fingerprint);
    if (files.length === 0 && !(await isInstalled(fingerprint))) return { commands: [] };
    const deletions = files.map((file) => [...sudo, 'rm', '-f', '--', file]);
    return { commands: [...deletions, [...sudo, ...updating, ...onRemoval]] };
  }

  async function isInstalled(fingerprint: string): Promise<boolean> {
    for (const bundle of bundles) {
      if (readFingerprints((await readFileIfPresent(bundle)) ?? '').includes(fingerprint)) return true;
    }
    return (await addAnchors(fingerprint)).length > 0;
  }

  async function obstacle(allowed: readonly string[]): Promise<string | null> {
    const present = await readFileIfPresent(anchor);
    if (present === null || readFingerprints(present).some((found) => allowed.includes(found))) return null;
    return `${anchor} holds a certificate that this home did not install; if it is yours, remove it and try again`;
  }

  // Only files with that certificate alone: a bundle of the user must not be deleted.
  async function addAnchors(fingerprint: string): Promise<string[]> {
    const names = await readdir(anchorsDir).catch(() => []);
    const files = names.filter((name) => /\.(crt|pem)$/.test(name)).map((name) => path.join(anchorsDir, name));
    const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')));
    return files.filter((_, i) => readFingerprints(texts[i] ?? '').join() === fingerprint);
  }

  return createTrustStore({
    id,
    name,
    run: runCommand,
    places: [anchor, ...bundles],
    installation: (rootFile) => [
      [...sudo, 'install', '-D', '-m', '0644', rootFile, anchor],
      [...sudo, ...updating],
    ],
    removal,
    isInstalled,
    obstacle,
  });
}

/** macOS: the System keychain, trusted for TLS only. @param workDir  private, for the file that a removal reads */
export function createDarwinTrust(workDir: string, run = runCommand): TrustStore {
  const keychain = '/Library/Keychains/System.keychain';

  async function findCertificate(fingerprint: string): Promise<X509Certificate | null> {
    const all = readCertificates(await run(['security', 'find-certificate', '-a', '-p', keychain]));
    return all.find(({ fingerprint256 }) => fingerprint256 === fingerprint) ?? null;
  }

  async function removal(fingerprint: string): Promise<Removal> {
    const root = await findCertificate(fingerprint);
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
    isInstalled: async (fingerprint) => (await findCertificate(fingerprint)) !== null,
  });
}
