import { accessSync, constants, existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createDarwinTrust } from './darwin.ts';
import { createArchTrust, createDebianTrust, createFedoraTrust } from './linux.ts';
import { createNssTrust } from './nss.ts';
import type { TrustStore } from './trust-store.ts';
import { createWindowsTrust } from './windows.ts';

export type { TrustPlan, TrustStore } from './trust-store.ts';

/** What decides which stores a machine has. */
export interface MachineFacts {
  readonly platform: NodeJS.Platform;
  /** The user's home directory. */
  readonly userHome: string;
  /** A private directory for temporary files. */
  readonly workDir: string;
  exists(file: string): boolean;
  /** The path of a program in PATH; null when there is none. */
  findTool(name: string): string | null;
}

/** The stores of a machine, the system's first; none where no store is known. */
export function trustStores(facts: MachineFacts): TrustStore[] {
  if (facts.platform === 'darwin') return [createDarwinTrust({ workDir: facts.workDir })];
  if (facts.platform === 'win32') return [createWindowsTrust()];
  if (facts.platform !== 'linux') return [];
  return [linuxStore(facts), nssStore(facts)].filter((store) => store !== null);
}

/** @param env  the user's PATH and HOME */
export function inspectMachine(
  env: { readonly PATH?: string | undefined; readonly HOME?: string | undefined },
  workDir: string,
): MachineFacts {
  return {
    platform: process.platform,
    userHome: env.HOME || os.homedir(),
    workDir,
    exists: existsSync,
    findTool: (name) => findInPath(name, env.PATH ?? ''),
  };
}

// The folder alone is no proof: distributions ship folders of each other's tools.
function linuxStore({ exists, findTool }: MachineFacts): TrustStore | null {
  const sysroot = '/';
  const has = (folder: string, ...tools: string[]): boolean =>
    exists(folder) && tools.some((tool) => exists(tool) || findTool(path.basename(tool)) !== null);
  if (has('/etc/pki/ca-trust/source/anchors', '/usr/bin/update-ca-trust')) return createFedoraTrust({ sysroot });
  if (has('/etc/ca-certificates/trust-source/anchors', '/usr/bin/trust')) return createArchTrust({ sysroot });
  if (has('/etc/ca-certificates.conf', '/usr/sbin/update-ca-certificates')) return createDebianTrust({ sysroot });
  return null;
}

function nssStore({ exists, findTool, userHome }: MachineFacts): TrustStore | null {
  const databaseDir = path.join(userHome, '.pki', 'nssdb');
  const certutil = findTool('certutil');
  // A database is never created: where there is none, no program reads one.
  return certutil !== null && exists(path.join(databaseDir, 'cert9.db'))
    ? createNssTrust({ databaseDir, certutil })
    : null;
}

function findInPath(name: string, searchPath: string): string | null {
  for (const dir of searchPath.split(path.delimiter).filter((part) => path.isAbsolute(part))) {
    const file = path.join(dir, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // Not in this directory.
    }
  }
  return null;
}
