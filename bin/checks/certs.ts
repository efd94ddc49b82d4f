import { loadLeaf } from '../../certs/index.ts';
import type { HomePaths } from '../../common/paths.ts';
import { bad, type Check, good } from './check.ts';

export function checkCerts(paths: HomePaths, nowMs: number): Check {
  const state = loadLeaf(paths, nowMs);
  if (state.kind === 'usable') {
    return good('certs', `valid until ${new Date(state.leaf.notAfterMs).toISOString().slice(0, 10)}, key is private`);
  }
  if (state.reason === 'missing') return bad('certs', 'not made yet', 'comet-cc install-ca');
  const words = state.reason.replaceAll('_', ' ');
  return bad(
    'certs',
    `${state.file}: ${words}; requests go past comet-cc`,
    `remove ${paths.certsDir}, then comet-cc install-ca`,
  );
}
