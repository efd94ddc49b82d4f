import { inspectRenewal, inspectTrust, type TrustStore } from '../../certs/index.ts';
import type { HomePaths } from '../../common/paths.ts';
import { bad, type Check, good } from './check.ts';

const REPLACE = 'comet-cc install-ca --system';

/** Checks that the trust stores hold the expected root and no outdated one. */
export async function checkTrust(paths: HomePaths, stores: readonly TrustStore[], nowMs: number): Promise<Check> {
  const troubles: string[] = [];
  const trusting: string[] = [];
  try {
    const { fingerprint } = await inspectRenewal(paths, nowMs);
    for (const store of stores) {
      const { holdsCurrent, wasAsked, former } = await inspectTrust(paths, store, fingerprint);
      if (holdsCurrent) trusting.push(store.name);
      else if (wasAsked && former.length === 0) troubles.push(`${store.name} no longer holds the root`);
      if (former.length > 0) troubles.push(`${store.name} holds ${former.length} older of our roots`);
    }
  } catch (error) {
    return bad(
      'trust',
      error instanceof Error ? error.message : String(error),
      'fix what it names, then run comet-cc doctor',
    );
  }
  if (troubles.length > 0) return bad('trust', troubles.join('; '), `${REPLACE}, or comet-cc uninstall-ca`);
  if (trusting.length > 0) return good('trust', `the root is trusted by ${trusting.join(', ')}`);
  return good('trust', 'no system store was asked to trust the root; Claude Code needs only the bundle');
}
