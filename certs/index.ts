import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { CometError } from '../common/errors.ts';
import { ensureDir, inspectPrivateFile } from '../common/files.ts';
import type { HomePaths } from '../common/paths.ts';
import { type Bundle, bundleFile, resolveUserFile, writeBundle, writeBundleInto } from './bundle.ts';
import type { Issued } from './leaf.ts';

import { OVERLAP_DAYS } from './renewal.ts';
import * as store from './store.ts';

export { type Bundle, bundleFile, userCaFile } from './bundle.ts';
export { inspectOverlap, type Overlap } from './renewal.ts';
export type { LeafDoubt } from './store.ts';
export { type TrustPlan, type TrustStore, thisMachine, trustStores } from './trust/index.ts';
export { distrustRoots, trustedStores, trustRoot, trustState } from './trust/trust-registry.ts';

const TARGET_HOST = 'api.anthropic.com';
const DAY_MS = 86_400_000;
/** Sessions keep the bundle they started with: a new root is published so long before its leaf is served. */
const OVERLAP_MS = OVERLAP_DAYS * DAY_MS;
const HOUR_MS = 3_600_000;
const REPAIRED: readonly store.LeafDoubt[] = ['missing', 'expired', 'damaged', 'key_mismatch'];

export interface EnsureOptions {
  readonly nowMs: number;
  /** NODE_EXTRA_CA_CERTS as found in the user's environment. */
  readonly userExtraCaFile: string | null;
  /** The one host the root may vouch for; api.anthropic.com unless told. */
  readonly host?: string;
  /** Throws away what stands and starts anew; sessions that run now must be restarted. */
  readonly reissue?: boolean;
}

export interface Certs {
  /** What happened to the leaf that is served. */
  readonly change: 'kept' | 'issued' | 'renewed';
  readonly rootFile: string;
  readonly bundle: Bundle;
  /** SHA-256 of the root, upper-case hex with colons. */
  readonly fingerprint: string;
  readonly notAfterMs: number;
  /** The constraint of the root, in words. */
  readonly constraints: string;
}

/**
 * Makes root, leaf and bundle where they are missing or worn out, and brings the bundle up to date.
 *
 * @throws CometError `unsafe_file` when others may have seen or changed the key; nothing is replaced then
 */
export async function ensureCerts(paths: HomePaths, options: EnsureOptions): Promise<Certs> {
  const { nowMs, host = TARGET_HOST } = options;
  await ensureDir(paths.home);
  // Their age is by the machine's own clock, whatever time it is that we are asked about.
  await store.removeLeftovers(paths.certsDir, Date.now() - HOUR_MS);
  const userFile = await resolveUserFile(paths, options.userExtraCaFile);
  const nextDir = path.join(paths.certsDir, 'next');
  const judged = store.standing(paths.certsDir);
  const state = loadLeaf(paths, nowMs);
  const replace = (write: (dir: string) => Promise<void>): Promise<void> =>
    store.publish(paths.certsDir, judged, async (dir) => {
      await write(dir);
      await writeBundleInto(dir, userFile);
    });

  if (options.reissue !== true && state.kind === 'refused') refuseUnsafe(state);
  const remainingMs = state.kind === 'usable' ? state.leaf.notAfterMs - nowMs : 0;
  let change: Certs['change'] = 'kept';
  if (options.reissue !== true && remainingMs < DAY_MS && store.loadLeaf(nextDir, nowMs).kind === 'usable') {
    await replace((dir) => store.copyGeneration(nextDir, dir));
    change = 'renewed';
  } else if (options.reissue === true || remainingMs <= 0) {
    await replace(async (dir) => store.writeGeneration(dir, await issued(host, nowMs)));
    change = 'issued';
  } else if (remainingMs < OVERLAP_MS && store.loadLeaf(nextDir, nowMs).kind !== 'usable') {
    await store.publish(nextDir, store.standing(nextDir), async (dir) =>
      store.writeGeneration(dir, await issued(host, nowMs)),
    );
  }
  return { ...describeCerts(paths, host), change, bundle: await writeBundle(paths, userFile) };
}

/** What may be served now, or why nothing may. Reads the disk each time. */
export function loadLeaf(paths: HomePaths, nowMs: number): store.LeafState {
  const state = store.loadLeaf(paths.certsDir, nowMs);
  if (state.kind === 'refused') return state;
  const file = path.join(paths.certsDir, 'root.pem');
  const doubt = inspectPrivateFile(file);
  if (doubt !== null) return { kind: 'refused', reason: doubt, file };
  const bundle = bundleFile(paths.certsDir);
  const bundleDoubt = inspectPrivateFile(bundle);
  if (bundleDoubt !== null && bundleDoubt !== 'missing') return { kind: 'refused', reason: bundleDoubt, file: bundle };
  return isIssuedBy(file, state.leaf.cert) ? state : { kind: 'refused', reason: 'damaged', file };
}

/** Gives the proxy its leaf, checked anew at each call; `onRefused` hears why there is none. */
export function leafSource(options: {
  readonly paths: HomePaths;
  readonly now: () => number;
  readonly onRefused?: (state: { readonly reason: store.LeafDoubt; readonly file: string }) => void;
}): { leaf(): store.ServedLeaf | null } {
  return {
    leaf() {
      const state = loadLeaf(options.paths, options.now());
      if (state.kind === 'usable') return state.leaf;
      options.onRefused?.(state);
      return null;
    },
  };
}

/** Removes root, leaf, bundle and every leftover of them. Returns what went. */
export async function removeCerts(paths: HomePaths): Promise<string[]> {
  const present = inspectPrivateFile(paths.certsDir) !== 'missing';
  await rm(paths.certsDir, { recursive: true, force: true });
  const leftovers = await store.removeLeftovers(paths.certsDir, Number.POSITIVE_INFINITY);
  return present ? [paths.certsDir, ...leftovers] : leftovers;
}

function describeCerts(paths: HomePaths, host: string): Omit<Certs, 'change' | 'bundle'> {
  const rootFile = path.join(paths.certsDir, 'root.pem');
  const root = new X509Certificate(readFileSync(rootFile));
  return {
    rootFile,
    fingerprint: root.fingerprint256,
    notAfterMs: Date.parse(root.validTo),
    constraints: `vouches for ${host} and its subdomains only, never for an IP address; its key was destroyed`,
  };
}

function refuseUnsafe(state: { readonly reason: store.LeafDoubt; readonly file: string }): void {
  if (REPAIRED.includes(state.reason)) return;
  const hint =
    state.reason === 'not_yet_valid'
      ? "is not valid yet: check this machine's clock"
      : `may have been seen or changed by others (${state.reason}): remove ${path.dirname(state.file)}`;
  throw new CometError('unsafe_file', `${state.file} ${hint}, then run comet-cc install-ca`);
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

/** Loaded when it is needed: signing takes a library that costs every other command a tenth of a second. */
async function issued(host: string, nowMs: number): Promise<Issued> {
  const { issue } = await import('./leaf.ts');
  return issue(host, nowMs);
}
