import path from 'node:path';
import { type HomePaths, resolveDirectory } from '../../common/paths.ts';
import { sha256 } from '../../common/text.ts';

const PLAIN = /^[a-z0-9-]{1,64}$/;
/** Windows opens devices under these names, whatever the ending. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)$/;

/**
 * File name of a session, without ending: the id itself where that is safe everywhere, else `_` and its hash.
 * Upper case counts as unsafe, because macOS and Windows would fold two sessions into one file.
 */
export function sessionStem(sessionId: string): string {
  if (PLAIN.test(sessionId) && !DEVICE.test(sessionId)) return sessionId;
  return `_${sha256(sessionId, 40)}`;
}

/** Directory name of a project: its last name, readable, and a hash that tells equal names apart. */
export function projectSlug(project: string): string {
  const readable = (project.split(/[\\/]/).findLast((part) => part !== '') ?? '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replace(/^-|-$/g, '');
  return `${readable || 'project'}-${sha256(project, 8)}`;
}

export function libraryPaths(dir: string, { libraryDir }: Pick<HomePaths, 'libraryDir'>) {
  // Commands run in any folder, the engine in the home.
  const root =
    dir === '' ? libraryDir : resolveDirectory(dir.startsWith('~') ? dir : path.resolve(libraryDir, '..', dir));
  return { root, tasksDir: path.join(root, 'tasks'), inboxDir: path.join(root, 'inbox') };
}
