import type { FileChange } from '../model/turn.ts';

/** Score penalty if all files of a node changed. */
const STALE_LOSS = 0.3;
const PLAIN_PATH = /^[\w./@+-]{1,80}$/;

/** 1 if no file changed, lower by the share of changed files. */
export function freshnessFactor(changes: number, files: number): number {
  return files === 0 ? 1 : 1 - (STALE_LOSS * Math.min(changes, files)) / files;
}

/** `[file changed since: src/db.ts]`; '' without a change. Only plain paths are quoted. */
export function staleNote(changes: readonly FileChange[]): string {
  const [first] = changes;
  if (first === undefined) return '';
  const done = changes.every(({ state }) => state === 'deleted') ? 'deleted' : 'changed';
  const subject = changes.length === 1 ? `file ${done} since` : `${changes.length} files ${done} since`;
  const match = changes.find(({ path }) => PLAIN_PATH.test(path));
  if (match === undefined) return `[${subject}]`;
  return `[${subject}: ${match.path}${changes.length > 1 ? ', …' : ''}]`;
}
