import path from 'node:path';
import { createAnchorTrust, needsSudo } from './anchors.ts';
import type { TrustStore } from './trust-store.ts';

export interface DebianTrustOptions {
  /** `/`, or a directory with the same layout below it. */
  readonly sysroot: string;
  /** Whether commands need sudo; unless told, when we are not root. */
  readonly sudo?: boolean;
}

/** Debian and Ubuntu: the local directory of `update-ca-certificates`. */
export function createDebianTrust({ sysroot, sudo = needsSudo() }: DebianTrustOptions): TrustStore {
  const at = (...parts: string[]): string => path.join(sysroot, ...parts);
  const update = ['update-ca-certificates', ...(sysroot === '/' ? [] : elsewhere(at))];
  return createAnchorTrust({
    id: 'debian',
    name: 'Debian and Ubuntu (update-ca-certificates)',
    anchorsDir: at('usr/local/share/ca-certificates'),
    file: 'comet-cc.crt',
    bundles: [at('etc/ssl/certs/comet-cc.pem'), at('etc/ssl/certs/ca-certificates.crt')],
    afterInstall: update,
    // Without it the links by hash to a certificate that is gone stay.
    afterRemoval: [...update, '--fresh'],
    sudo,
  });
}

function elsewhere(at: (...parts: string[]) => string): string[] {
  return [
    ...['--certsconf', at('etc/ca-certificates.conf')],
    ...['--certsdir', at('usr/share/ca-certificates')],
    ...['--localcertsdir', at('usr/local/share/ca-certificates')],
    ...['--etccertsdir', at('etc/ssl/certs')],
    ...['--hooksdir', at('etc/ca-certificates/update.d')],
  ];
}
