import { inspectRenewal, inspectTrust, type LeafProblem, loadLeaf, type TrustStore } from '../../certs/index.ts';
import { getReason } from '../../common/errors.ts';
import type { HomePaths } from '../../common/paths.ts';
import { bad, type Check, good } from './index.ts';

const AGAIN = 'comet-cc install-ca';
const LAST_DAY_MS = 86_400_000;

/** Keys and certificates, how long they last, and whether clients are given what they will need. */
export async function checkCerts(paths: HomePaths, nowMs: number): Promise<Check> {
  const state = loadLeaf(paths, nowMs);
  if (state.kind === 'refused') return refused(paths, state);
  const { notAfterMs } = state.leaf;
  const overlap = await inspectRenewal(paths, nowMs);
  const until = `valid until ${new Date(notAfterMs).toISOString().slice(0, 10)}`;
  const bundle = BUNDLE_TROUBLES[overlap.bundle];
  if (bundle !== '') return bad('certs', `${until}, but ${bundle}`, `${AGAIN}, then restart Claude Code`);
  if (notAfterMs - nowMs < LAST_DAY_MS) return bad('certs', `${until}: less than a day`, AGAIN);
  if (overlap.next === 'due')
    return bad('certs', `${until}, and no next root is published for sessions to learn in time`, AGAIN);
  const renewal = overlap.next === 'ready' ? ', its successor is in the bundle already' : '';
  return good('certs', `${until}, key is private${renewal}`);
}

const BUNDLE_TROUBLES = {
  whole: '',
  missing: 'the bundle that clients trust is missing',
  without_root: 'the bundle that clients trust does not hold the root',
  without_next: 'the bundle that clients trust does not hold the next root',
};

function refused(paths: HomePaths, { reason, file }: { readonly reason: LeafProblem; readonly file: string }): Check {
  if (reason === 'missing') return bad('certs', `not made yet: ${file} is missing`, AGAIN);
  const detail = `${file}: ${reason.replaceAll('_', ' ')}; requests go past comet-cc`;
  const fixes: Partial<Record<LeafProblem, string>> = {
    expired: `${AGAIN}, then restart Claude Code`,
    not_yet_valid: `set this machine's clock right; if it is right, comet-cc uninstall-ca, then ${AGAIN}`,
  };
  return bad('certs', detail, fixes[reason] ?? `remove ${paths.certsDir}, then ${AGAIN}`);
}

const REPLACE = 'comet-cc install-ca --system';

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
    return bad('trust', getReason(error), 'fix what it names, then run comet-cc doctor');
  }
  if (troubles.length > 0) return bad('trust', troubles.join('; '), `${REPLACE}, or comet-cc uninstall-ca`);
  if (trusting.length > 0) return good('trust', `the root is trusted by ${trusting.join(', ')}`);
  return good('trust', 'no system store was asked to trust the root; Claude Code needs only the bundle');
}
