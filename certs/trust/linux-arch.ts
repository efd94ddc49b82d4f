import path from 'node:path';
import { createAnchorTrust, needsSudo } from './anchors.ts';
import type { TrustStore } from './trust-store.ts';

export interface ArchTrustOptions {
  readonly sysroot: string;
  readonly sudo?: boolean;
  /** p11-kit's program; the one in PATH unless told. */
  readonly trust?: string;
}

/** Arch Linux: the anchors of p11-kit. */
export function createArchTrust(options: ArchTrustOptions): TrustStore {
  const at = (...parts: string[]): string => path.join(options.sysroot, ...parts);
  const extract = [options.trust ?? 'trust', 'extract-compat'];
  return createAnchorTrust({
    id: 'arch',
    name: 'Arch Linux (trust extract-compat)',
    anchorsDir: at('etc/ca-certificates/trust-source/anchors'),
    file: 'comet-cc.crt',
    bundles: [at('etc/ca-certificates/extracted/tls-ca-bundle.pem')],
    afterInstall: extract,
    afterRemoval: extract,
    sudo: options.sudo ?? needsSudo(),
  });
}
