import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { DAY_MS, HOUR_MS } from '../common/async.ts';
import { CometError } from '../common/errors.ts';
import { ensureDir, inspectPrivateFile, readFileIfPresent, removeLeftovers } from '../common/files.ts';
import type { HomePaths } from '../common/paths.ts';
import type { Issued } from './ca.ts';
import * as store from './store.ts';
import { bundleFile, readFingerprints, resolveUserFile, writeBundle } from './store.ts';

export { bundleFile, type LeafProblem, userCaFile } from './store.ts';
export {
  distrustRoots,
  inspectTrust,
  listTrustedStores,
  systemRoots,
  type TrustPlan,
  type TrustStore,
  trustRoot,
  trustStores,
} from './trust/index.ts';

const TARGET_HOST = 'api.anthropic.com';
/** Sessions keep the bundle they started with, so a new root is published this long before its leaf is served. */
const RENEWAL_MS = 30 * DAY_MS;
const REPAIRED: readonly store.LeafProblem[] = ['missing', 'expired', 'damaged', 'key_mismatch'];

export type Certs = Awaited<ReturnType<typeof ensureCerts>>;

/**
 * Creates root, leaf and bundle where they are missing or expire, and updates the bundle.
 * @param options.userExtraCaFile  NODE_EXTRA_CA_CERTS as found in the user's environment
 * @throws CometError `unsafe_file` when other users may have read or written the key; nothing is replaced then
 */
export async function ensureCerts(
  paths: HomePaths,
  { nowMs, userExtraCaFile }: { readonly nowMs: number; readonly userExtraCaFile: string | null },
) {
  await ensureDir(paths.home);
  // Ages of files follow the machine's clock, not `nowMs`.
  await removeLeftovers(paths.certsDir, Date.now() - HOUR_MS);
  const userFile = await resolveUserFile(paths, userExtraCaFile);
  const nextDir = path.join(paths.certsDir, 'next');
  const checked = store.getGeneration(paths.certsDir);
  const state = loadLeaf(paths, nowMs);
  const replace = (write: (dir: string) => Promise<void>): Promise<void> =>
    store.publish(paths.certsDir, checked, async (dir) => {
      await write(dir);
      await writeBundle(dir, userFile);
    });

  if (state.kind === 'refused' && !REPAIRED.includes(state.reason)) {
    const hint =
      state.reason === 'not_yet_valid'
        ? "is not valid yet: set this machine's clock right; if it is right, run comet-cc uninstall-ca"
        : `may have been seen or changed by others (${state.reason}): remove ${paths.certsDir}`;
    throw new CometError('unsafe_file', `${state.file} ${hint}, then run comet-cc install-ca`);
  }
  const remainingMs = state.kind === 'usable' ? state.leaf.notAfterMs - nowMs : 0;
  /** Of the leaf that is served. */
  let change: 'kept' | 'issued' | 'renewed' = 'kept';
  if (remainingMs < DAY_MS && store.loadLeaf(nextDir, nowMs).kind === 'usable') {
    await replace((dir) => store.copyGeneration(nextDir, dir));
    change = 'renewed';
  } else if (remainingMs <= 0) {
    await replace(async (dir) => store.writeGeneration(dir, await issueCerts(nowMs)));
    change = 'issued';
  } else if (remainingMs < RENEWAL_MS && store.loadLeaf(nextDir, nowMs).kind !== 'usable') {
    const issued = await issueCerts(nowMs);
    await store.publish(nextDir, store.getGeneration(nextDir), (dir) => store.writeGeneration(dir, issued));
  }
  return { ...describeCerts(paths), change, bundle: await writeBundle(paths.certsDir, userFile) };
}

/** The leaf to serve now, or why there is none. Reads the disk each time. */
export function loadLeaf(paths: HomePaths, nowMs: number) {
  const state = store.loadLeaf(paths.certsDir, nowMs);
  if (state.kind === 'refused') return state;
  const file = path.join(paths.certsDir, 'root.pem');
  const doubt = inspectPrivateFile(file);
  if (doubt !== null) return store.refuse(doubt, file);
  const bundle = bundleFile(paths.certsDir);
  const bundleDoubt = inspectPrivateFile(bundle);
  if (bundleDoubt !== null && bundleDoubt !== 'missing') return store.refuse(bundleDoubt, bundle);
  return isIssuedBy(file, state.leaf.cert) ? state : store.refuse('damaged', file);
}

/** Removes root, leaf, bundle and what crashes left of them. Returns the removed paths. */
export async function removeCerts(paths: HomePaths): Promise<string[]> {
  const present = inspectPrivateFile(paths.certsDir) !== 'missing';
  await rm(paths.certsDir, { recursive: true, force: true });
  const leftovers = await removeLeftovers(paths.certsDir);
  return present ? [paths.certsDir, ...leftovers] : leftovers;
}

function describeCerts(paths: HomePaths) {
  const rootFile = path.join(paths.certsDir, 'root.pem');
  const root = new X509Certificate(readFileSync(rootFile));
  return {
    rootFile,
    /** SHA-256 of the root, upper-case hex with colons. */
    fingerprint: root.fingerprint256,
    notAfterMs: Date.parse(root.validTo),
    constraints: `valid for ${TARGET_HOST} and its subdomains only, never for an IP address; its key was destroyed`,
  };
}

function isIssuedBy(rootFile: string, leaf: string): boolean {
  try {
    const root = new X509Certificate(readFileSync(rootFile));
    const cert = new X509Certificate(leaf);
    return cert.checkIssued(root) && cert.verify(root.publicKey);
  } catch {
    return false;
  }
}

/** Imports on demand: the signing library takes a tenth of a second to load. */
async function issueCerts(nowMs: number): Promise<Issued> {
  const { issue } = await import('./ca.ts');
  return issue(TARGET_HOST, nowMs);
}

/** State of the next root. Reads only. */
export async function inspectRenewal(paths: HomePaths, nowMs: number) {
  const nextDir = path.join(paths.certsDir, 'next');
  const leaf = store.loadLeaf(paths.certsDir, nowMs);
  const getFingerprint = async (dir: string): Promise<string | null> =>
    readFingerprints((await readFileIfPresent(path.join(dir, 'root.pem'))) ?? '')[0] ?? null;
  const [current, next] = [await getFingerprint(paths.certsDir), await getFingerprint(nextDir)];
  const isReady = next !== null && store.loadLeaf(nextDir, nowMs).kind === 'usable';
  const isNear = leaf.kind === 'usable' && leaf.leaf.notAfterMs - nowMs < RENEWAL_MS;
  const text = await readFileIfPresent(bundleFile(paths.certsDir));
  const fingerprints = readFingerprints(text ?? '');
  const holds = (fingerprint: string | null): boolean => fingerprint === null || fingerprints.includes(fingerprint);
  const isWhole = holds(current) && !(isReady && !holds(next));
  const lacking = holds(current) ? ('without_next' as const) : ('without_root' as const);
  const bundle = text === null ? ('missing' as const) : isWhole ? ('whole' as const) : lacking;
  return {
    /** SHA-256 of the current root; null when there is none. */
    fingerprint: current,
    /** `due`: the leaf expires soon, and no next root is ready. */
    next: isReady ? ('ready' as const) : isNear ? ('due' as const) : ('not_due' as const),
    bundle,
  };
}
