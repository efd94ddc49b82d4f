import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import tls from 'node:tls';
import { CometError } from '../../common/errors.ts';
import { readFileIfPresent, writePrivateFile } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { isRecord, parseJson, toRecord } from '../../common/text.ts';
import { certificateBlocks, readRoot } from '../store.ts';
import { BUNDLES, createAnchorTrust, createDarwinTrust, type TrustStore } from './store.ts';

export type { TrustPlan, TrustStore } from './store.ts';

/** What decides which stores a machine has. */
export interface MachineFacts {
  readonly platform: NodeJS.Platform;
  exists(file: string): boolean;
  /** The path of a program in PATH; null when there is none. */
  findTool(name: string): string | null;
}

const LINUX_STORES = [
  ['fedora', '/etc/pki/ca-trust/source/anchors', '/usr/bin/update-ca-trust'],
  ['arch', '/etc/ca-certificates/trust-source/anchors', '/usr/bin/trust'],
  ['debian', '/etc/ca-certificates.conf', '/usr/sbin/update-ca-certificates'],
] as const;

/** @param workDir  a private directory for temporary files */
export function trustStores(
  env: NodeJS.ProcessEnv,
  workDir: string,
  { platform, exists, findTool }: MachineFacts = {
    platform: process.platform,
    exists: existsSync,
    findTool: (name) => findInPath(name, env['PATH'] ?? ''),
  },
): TrustStore[] {
  if (platform === 'darwin') return [createDarwinTrust(workDir)];
  if (platform !== 'linux') return [];
  // The folder alone is no proof: distributions ship folders of each other's tools.
  const found = LINUX_STORES.find(
    ([, folder, tool]) => exists(folder) && (exists(tool) || findTool(path.basename(tool)) !== null),
  );
  if (found === undefined) return [];
  const [id, , tool] = found;
  // PATH lacks sbin for users of Debian, and for root after a plain su.
  return [createAnchorTrust(id, { sysroot: '/', program: findTool(path.basename(tool)) ?? tool })];
}

/** PEM of what Claude Code trusts beside the public roots. @param files  the store; Node lists it from 22.15 on */
export function systemRoots(env: NodeJS.ProcessEnv, files: readonly string[] = BUNDLES): string[] {
  const { getCACertificates } = tls as { getCACertificates?: (store: 'system') => string[] };
  const own = readPem(env['NODE_EXTRA_CA_CERTS'] ?? '');
  if (env['CLAUDE_CODE_CERT_STORE']?.includes('system') === false) return own;
  const store = env['SSL_CERT_FILE'] ? [env['SSL_CERT_FILE']] : files;
  return [...own, ...(getCACertificates?.('system') ?? store.flatMap(readPem))];
}

function readPem(file: string): string[] {
  try {
    return certificateBlocks(readFileSync(file, 'utf8'));
  } catch {
    return []; // Of another system, or not readable.
  }
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

/** A root that a store was told to trust; recorded until it is removed, also when newer certificates replace it. */
interface TrustedRoot {
  /** The store's `id`. */
  readonly store: string;
  readonly fingerprint: string;
}

/** Reads `store`. @param current  fingerprint of the current root; null when there is none */
export async function inspectTrust(paths: HomePaths, store: TrustStore, current: string | null) {
  const roots = (await readRecord(paths)).filter((root) => root.store === store.id).map((root) => root.fingerprint);
  const former: string[] = [];
  for (const fingerprint of roots) {
    if (fingerprint !== current && (await store.isInstalled(fingerprint))) former.push(fingerprint);
  }
  const wasAsked = roots.length > 0;
  return { holdsCurrent: current !== null && (await isHeld(store, current, wasAsked)), wasAsked, former };
}

/**
 * Makes `store` trust the current root and no older one.
 * @throws CometError `trust_failed`; what the store has by then is recorded
 */
export async function trustRoot(paths: HomePaths, store: TrustStore, rootFile: string): Promise<void> {
  const { fingerprint256: current } = await readRoot(rootFile);
  const { former } = await inspectTrust(paths, store, current);
  // Before the commands: a crash must leave no root that is not recorded.
  await writeRecord(paths, [
    ...(await readRecord(paths)).filter((root) => root.store !== store.id || root.fingerprint !== current),
    { store: store.id, fingerprint: current },
  ]);
  await store.install(rootFile, former);
  await forgetRoots(paths, (root) => root.store === store.id && root.fingerprint !== current);
}

/**
 * Removes every root of this home from `stores`: the recorded ones, the current one and the next one.
 * @returns names of the stores that had one; ids of stores that were told to trust one and cannot be read
 * @throws CometError `trust_failed` when one is still there; it stays recorded
 */
export async function distrustRoots(paths: HomePaths, stores: readonly TrustStore[]) {
  const recorded = await readRecord(paths);
  const generated = [path.join(paths.certsDir, 'root.pem'), path.join(paths.certsDir, 'next', 'root.pem')];
  const present = await Promise.all(generated.filter((file) => existsSync(file)).map(getFingerprint));
  const cleared: string[] = [];
  for (const store of stores) {
    const roots = recorded.filter((root) => root.store === store.id).map((root) => root.fingerprint);
    const ids = new Set([...roots, ...present.filter((fingerprint) => fingerprint !== null)]);
    let hadRoot = false;
    for (const fingerprint of ids) {
      if (await isHeld(store, fingerprint, roots.length > 0)) hadRoot = (await store.remove(fingerprint)) || hadRoot;
    }
    await forgetRoots(paths, (root) => root.store === store.id);
    if (hadRoot) cleared.push(store.name);
  }
  return { stores: cleared, unreachable: await listTrustedStores(paths) };
}

/** Ids of the stores that were told to trust a root of this home. @throws CometError `ca_unreadable` */
export async function listTrustedStores(paths: HomePaths): Promise<string[]> {
  return [...new Set((await readRecord(paths)).map(({ store }) => store))];
}

// A store that was never changed and cannot be read, say a broken database, must not stop the removal from others.
async function isHeld(store: TrustStore, fingerprint: string, wasAsked: boolean): Promise<boolean> {
  try {
    return await store.isInstalled(fingerprint);
  } catch (error) {
    if (wasAsked || !(error instanceof CometError)) throw error;
    return false;
  }
}

// A damaged root file was never installed; what was installed is recorded.
async function getFingerprint(file: string): Promise<string | null> {
  try {
    return (await readRoot(file)).fingerprint256;
  } catch (error) {
    if (error instanceof CometError) return null;
    throw error;
  }
}

async function forgetRoots(paths: HomePaths, isGone: (root: TrustedRoot) => boolean): Promise<void> {
  const before = await readRecord(paths);
  const after = before.filter((root) => !isGone(root));
  if (after.length === before.length) return;
  if (after.length === 0) await rm(recordFile(paths), { force: true });
  else await writeRecord(paths, after);
}

function writeRecord(paths: HomePaths, roots: readonly TrustedRoot[]): Promise<void> {
  return writePrivateFile(recordFile(paths), `${JSON.stringify({ roots }, null, 2)}\n`);
}

async function readRecord(paths: HomePaths): Promise<readonly TrustedRoot[]> {
  const text = await readFileIfPresent(recordFile(paths));
  if (text === null) return [];
  // Not a zod schema, which takes 70 ms to load: `env` and `run` do not need it.
  const { roots } = toRecord(parseJson(text));
  const isRoot = (root: unknown): boolean =>
    isRecord(root) && typeof root['store'] === 'string' && typeof root['fingerprint'] === 'string';
  if (Array.isArray(roots) && roots.every(isRoot)) return roots as TrustedRoot[];
  const next = "remove the roots of comet-cc from the system's store by hand";
  throw new CometError('ca_unreadable', `${recordFile(paths)} is damaged: ${next}`);
}

const recordFile = (paths: HomePaths): string => path.join(paths.home, 'trusted-roots.json');
