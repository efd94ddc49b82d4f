import path from 'node:path';
import { createAnchorTrust, needsSudo } from './anchors.ts';
import type { TrustStore } from './trust-store.ts';

export interface FedoraTrustOptions {
  readonly sysroot: string;
  readonly sudo?: boolean;
  /** The program; the one in PATH unless told. */
  readonly updateCaTrust?: string;
}

/** Fedora, RHEL and their kin: the anchors of `update-ca-trust`. */
export function createFedoraTrust(options: FedoraTrustOptions): TrustStore {
  const at = (...parts: string[]): string => path.join(options.sysroot, ...parts);
  const update = [options.updateCaTrust ?? 'update-ca-trust', 'extract'];
  return createAnchorTrust({
    id: 'fedora',
    name: 'Fedora and RHEL (update-ca-trust)',
    anchorsDir: at('etc/pki/ca-trust/source/anchors'),
    file: 'comet-cc.pem',
    bundles: [at('etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem')],
    afterInstall: update,
    afterRemoval: update,
    sudo: options.sudo ?? needsSudo(),
  });
}
