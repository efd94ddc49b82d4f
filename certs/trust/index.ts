import { existsSync } from 'node:fs';
import path from 'node:path';
import { createDebianTrust } from './linux-debian.ts';

export interface TrustPlan {
  /** The exact commands, in order, as argument lists. */
  readonly commands: readonly (readonly string[])[];
  /** SHA-256 of the root. */
  readonly fingerprint: string;
  /** What the system will hold afterwards. */
  readonly files: readonly string[];
  /** The root as OpenSSL-style text for the user: subject, expiry, constraint. */
  readonly certificate: string;
}

/** A system's certificate store. Nothing is done before `install` or `remove`. */
export interface TrustStore {
  readonly name: string;
  /** @throws CometError `ca_unreadable` when there is no root */
  describe(rootFile: string): Promise<TrustPlan>;
  /** @throws CometError `trust_failed` when a command fails or the root is not there afterwards */
  install(rootFile: string): Promise<void>;
  /** False when it was not there. @throws CometError `trust_failed` when it is still there afterwards */
  remove(fingerprint: string): Promise<boolean>;
  /** Looks into the store itself. */
  isInstalled(fingerprint: string): Promise<boolean>;
}

/** The store of this machine; null where none is known. */
export function systemTrust(sysroot = '/'): TrustStore | null {
  if (process.platform !== 'linux') return null;
  return existsSync(path.join(sysroot, 'usr/sbin/update-ca-certificates')) ? createDebianTrust({ sysroot }) : null;
}
