import path from 'node:path';
import { readFileIfPresent } from '../common/files.ts';
import type { HomePaths } from '../common/paths.ts';
import { bundleFile } from './bundle.ts';
import * as store from './store.ts';
import { readFingerprints } from './trust/certificates.ts';

/** Sessions keep the bundle they started with, so a new root is published this long before its leaf is served. */
export const RENEWAL_DAYS = 30;

export interface Renewal {
  /** SHA-256 of the current root; null when there is none. */
  readonly fingerprint: string | null;
  /** `due`: the leaf expires within that time, and no next root is ready. */
  readonly next: 'not_due' | 'due' | 'ready';
  readonly bundle: 'whole' | 'missing' | 'without_root' | 'without_next';
}

/** State of the next root. Reads only. */
export async function inspectRenewal(paths: HomePaths, nowMs: number): Promise<Renewal> {
  const nextDir = path.join(paths.certsDir, 'next');
  const leaf = store.loadLeaf(paths.certsDir, nowMs);
  const fingerprintOf = async (dir: string): Promise<string | null> =>
    readFingerprints((await readFileIfPresent(path.join(dir, 'root.pem'))) ?? '')[0] ?? null;
  const [current, next] = [await fingerprintOf(paths.certsDir), await fingerprintOf(nextDir)];
  const isReady = next !== null && store.loadLeaf(nextDir, nowMs).kind === 'usable';
  const isNear = leaf.kind === 'usable' && leaf.leaf.notAfterMs - nowMs < RENEWAL_DAYS * 86_400_000;
  const text = await readFileIfPresent(bundleFile(paths.certsDir));
  const held = readFingerprints(text ?? '');
  const holds = (fingerprint: string | null): boolean => fingerprint === null || held.includes(fingerprint);
  return {
    fingerprint: current,
    next: isReady ? 'ready' : isNear ? 'due' : 'not_due',
    bundle:
      text === null
        ? 'missing'
        : holds(current)
          ? isReady && !holds(next)
            ? 'without_next'
            : 'whole'
          : 'without_root',
  };
}
