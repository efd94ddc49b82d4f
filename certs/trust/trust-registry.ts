import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { CometError } from '../../common/errors.ts';
import { ensureDir, readFileIfPresent, writeFileAtomic } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { readRoot } from './certificates.ts';
import type { TrustStore } from './index.ts';

/** A root that a store was told to trust. Generations of certificates come and go, this stays until it is removed. */
interface TrustedRoot {
  /** The store's `id`. */
  readonly store: string;
  readonly fingerprint: string;
}

/** How a store stands to the root in force. */
export interface TrustState {
  readonly holdsCurrent: boolean;
  /** Whether it was told to trust the current root or an older one. */
  readonly wasAsked: boolean;
  /** Roots of ours that it still holds though another is in force. */
  readonly former: readonly string[];
}

/** Looks into `store`. @param current  fingerprint of the root in force; null when there is none */
export async function trustState(paths: HomePaths, store: TrustStore, current: string | null): Promise<TrustState> {
  const asked = (await readTrusted(paths)).filter((root) => root.store === store.id).map((root) => root.fingerprint);
  const former: string[] = [];
  for (const fingerprint of asked) {
    if (fingerprint !== current && (await store.isInstalled(fingerprint))) former.push(fingerprint);
  }
  const wasAsked = asked.length > 0;
  return { holdsCurrent: current !== null && (await isHeld(store, current, wasAsked)), wasAsked, former };
}

/**
 * Makes `store` trust the root in force and none of its forerunners.
 *
 * @throws CometError `trust_failed`; whatever it holds by then is remembered
 */
export async function trustRoot(paths: HomePaths, store: TrustStore, rootFile: string): Promise<void> {
  const { fingerprint256: current } = await readRoot(rootFile);
  const { former } = await trustState(paths, store, current);
  const before = await readTrusted(paths);
  // Ahead of the commands: a crash between them must leave nothing that nobody knows of.
  await writeTrusted(paths, [
    ...before.filter((root) => root.store !== store.id || root.fingerprint !== current),
    { store: store.id, fingerprint: current },
  ]);
  await store.install(rootFile, former);
  await forget(paths, (root) => root.store === store.id && root.fingerprint !== current);
}

/**
 * Takes every root of this home out of `stores`: the ones remembered, the one in force and the next one.
 *
 * @returns names of the stores that held one; ids of stores that were told to trust one and cannot be looked into
 * @throws CometError `trust_failed` when one is still there; it stays remembered
 */
export async function distrustRoots(
  paths: HomePaths,
  stores: readonly TrustStore[],
): Promise<{ readonly stores: readonly string[]; readonly unreachable: readonly string[] }> {
  const remembered = await readTrusted(paths);
  const generated = [path.join(paths.certsDir, 'root.pem'), path.join(paths.certsDir, 'next', 'root.pem')];
  const present = await Promise.all(generated.filter((file) => existsSync(file)).map(fingerprintOf));
  const cleared: string[] = [];
  for (const store of stores) {
    const asked = remembered.filter((root) => root.store === store.id).map((root) => root.fingerprint);
    const ours = new Set([...asked, ...present.filter((fingerprint) => fingerprint !== null)]);
    let held = false;
    for (const fingerprint of ours) {
      if (await isHeld(store, fingerprint, asked.length > 0)) held = (await store.remove(fingerprint)) || held;
    }
    await forget(paths, (root) => root.store === store.id);
    if (held) cleared.push(store.name);
  }
  return { stores: cleared, unreachable: await trustedStores(paths) };
}

/** Ids of the stores that were told to trust a root of this home. @throws CometError `ca_unreadable` */
export async function trustedStores(paths: HomePaths): Promise<string[]> {
  return [...new Set((await readTrusted(paths)).map(({ store }) => store))];
}

// A store that was never asked and cannot be looked into, say a broken database, must not keep others from their end.
async function isHeld(store: TrustStore, fingerprint: string, wasAsked: boolean): Promise<boolean> {
  try {
    return await store.isInstalled(fingerprint);
  } catch (error) {
    if (wasAsked || !(error instanceof CometError)) throw error;
    return false;
  }
}

// A damaged root file was never installed by this name; what was is remembered.
async function fingerprintOf(file: string): Promise<string | null> {
  try {
    return (await readRoot(file)).fingerprint256;
  } catch (error) {
    if (error instanceof CometError) return null;
    throw error;
  }
}

async function forget(paths: HomePaths, isGone: (root: TrustedRoot) => boolean): Promise<void> {
  const before = await readTrusted(paths);
  const after = before.filter((root) => !isGone(root));
  if (after.length === before.length) return;
  if (after.length === 0) await rm(trustedFile(paths), { force: true });
  else await writeTrusted(paths, after);
}

async function writeTrusted(paths: HomePaths, roots: readonly TrustedRoot[]): Promise<void> {
  await ensureDir(paths.home);
  await writeFileAtomic(trustedFile(paths), `${JSON.stringify({ roots }, null, 2)}\n`);
}

async function readTrusted(paths: HomePaths): Promise<readonly TrustedRoot[]> {
  const text = await readFileIfPresent(trustedFile(paths));
  if (text === null) return [];
  const { Trusted } = await import('../schemas.ts');
  try {
    return Trusted.parse(JSON.parse(text)).roots;
  } catch (error) {
    const file = trustedFile(paths);
    throw new CometError('ca_unreadable', `${file} is damaged: remove our roots from the system's store by hand`, {
      cause: error,
    });
  }
}

const trustedFile = (paths: HomePaths): string => path.join(paths.home, 'trusted-roots.json');
