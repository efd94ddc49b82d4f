import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { readFileIfPresent } from '../../common/files.ts';
import { fingerprintsIn } from './certificates.ts';
import { type Argv, runCommand } from './run.ts';
import { createTrustStore, type Removal, type TrustStore } from './trust-store.ts';

/** A store that is a folder of anchor files and a command that makes bundles of it: every Linux has one. */
export interface AnchorFacts {
  readonly id: string;
  readonly name: string;
  readonly anchorsDir: string;
  /** The file of ours in there. */
  readonly file: string;
  /** What the command makes; looked into to see what is trusted. */
  readonly bundles: readonly string[];
  readonly afterInstall: Argv;
  readonly afterRemoval: Argv;
  readonly sudo: boolean;
}

/** Whether a command on the system's own files needs sudo. */
export function needsSudo(): boolean {
  return process.getuid?.() !== 0;
}

export function createAnchorTrust(facts: AnchorFacts): TrustStore {
  const ours = path.join(facts.anchorsDir, facts.file);
  const sudo = facts.sudo ? ['sudo'] : [];

  async function removal(fingerprint: string): Promise<Removal> {
    const files = await anchorsWith(fingerprint);
    if (files.length === 0 && !(await isInstalled(fingerprint))) return { commands: [] };
    const deletions = files.map((file) => [...sudo, 'rm', '-f', '--', file]);
    return { commands: [...deletions, [...sudo, ...facts.afterRemoval]] };
  }

  async function isInstalled(fingerprint: string): Promise<boolean> {
    for (const bundle of facts.bundles) {
      if (fingerprintsIn((await readFileIfPresent(bundle)) ?? '').includes(fingerprint)) return true;
    }
    return (await anchorsWith(fingerprint)).length > 0;
  }

  async function obstacle(allowed: readonly string[]): Promise<string | null> {
    const standing = await readFileIfPresent(ours);
    if (standing === null || fingerprintsIn(standing).some((found) => allowed.includes(found))) return null;
    return `${ours} holds a certificate that this home did not install; if it is yours, remove it and try again`;
  }

  // Only files that hold nothing else: a bundle of the user's own is not ours to delete.
  async function anchorsWith(fingerprint: string): Promise<string[]> {
    const names = await readdir(facts.anchorsDir).catch(() => []);
    const files = names.filter((name) => /\.(crt|pem)$/.test(name)).map((name) => path.join(facts.anchorsDir, name));
    const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')));
    return files.filter((_, i) => fingerprintsIn(texts[i] ?? '').join() === fingerprint);
  }

  return createTrustStore({
    id: facts.id,
    name: facts.name,
    run: runCommand,
    places: [ours, ...facts.bundles],
    installation: (rootFile) => [
      [...sudo, 'install', '-D', '-m', '0644', rootFile, ours],
      [...sudo, ...facts.afterInstall],
    ],
    removal,
    isInstalled,
    obstacle,
  });
}
