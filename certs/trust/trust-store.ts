import type { X509Certificate } from 'node:crypto';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { CometError } from '../../common/errors.ts';
import { ensureDir, writeFileAtomic } from '../../common/files.ts';
import { readRoot } from './certificates.ts';

/** A program and its arguments; never a line for a shell. */
export type Argv = readonly string[];

/** Returns the stdout of a command. @throws CometError `trust_failed` */
export type RunCommand = (argv: Argv) => Promise<string>;

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
export interface StoreSpec {
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

export function createTrustStore(spec: StoreSpec): TrustStore {
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
