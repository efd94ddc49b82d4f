import { inspectRenewal, type LeafProblem, loadLeaf, type Renewal } from '../../certs/index.ts';
import type { HomePaths } from '../../common/paths.ts';
import { bad, type Check, good } from './check.ts';

const AGAIN = 'comet-cc install-ca';
const LAST_DAY_MS = 86_400_000;

/** Keys and certificates, how long they last, and whether clients are given what they will need. */
export async function checkCerts(paths: HomePaths, nowMs: number): Promise<Check> {
  const state = loadLeaf(paths, nowMs);
  if (state.kind === 'refused') return refused(paths, state);
  const { notAfterMs } = state.leaf;
  const overlap = await inspectRenewal(paths, nowMs);
  const until = `valid until ${new Date(notAfterMs).toISOString().slice(0, 10)}`;
  const bundle = bundleTrouble(overlap);
  if (bundle !== '') return bad('certs', `${until}, but ${bundle}`, `${AGAIN}, then restart Claude Code`);
  if (notAfterMs - nowMs < LAST_DAY_MS) return bad('certs', `${until}: less than a day`, AGAIN);
  if (overlap.next === 'due') {
    return bad('certs', `${until}, and no next root is published for sessions to learn in time`, AGAIN);
  }
  const renewal = overlap.next === 'ready' ? ', its successor is in the bundle already' : '';
  return good('certs', `${until}, key is private${renewal}`);
}

function bundleTrouble({ bundle }: Renewal): string {
  switch (bundle) {
    case 'whole':
      return '';
    case 'missing':
      return 'the bundle that clients trust is missing';
    case 'without_root':
      return 'the bundle that clients trust does not hold the root';
    case 'without_next':
      return 'the bundle that clients trust does not hold the next root';
  }
}

function refused(paths: HomePaths, { reason, file }: { readonly reason: LeafProblem; readonly file: string }): Check {
  if (reason === 'missing') return bad('certs', `not made yet: ${file} is missing`, AGAIN);
  const detail = `${file}: ${reason.replaceAll('_', ' ')}; requests go past comet-cc`;
  switch (reason) {
    case 'expired':
      return bad('certs', detail, `${AGAIN}, then restart Claude Code`);
    case 'not_yet_valid':
      return bad('certs', detail, "set this machine's clock right");
    default:
      return bad('certs', detail, `remove ${paths.certsDir}, then ${AGAIN}`);
  }
}
