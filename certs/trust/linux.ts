import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { readFileIfPresent } from '../../common/files.ts';
import { readFingerprints } from './certificates.ts';
import { type Argv, createTrustStore, type Removal, runCommand, type TrustStore } from './trust-store.ts';

export interface LinuxTrustOptions {
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
