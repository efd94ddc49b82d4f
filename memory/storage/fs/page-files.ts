import { constants } from 'node:fs';
import { access, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { createMutex, type Mutex } from '../../../common/async.ts';
import type { Problem } from '../../../common/errors.ts';
import { makeDirs, orMissing, readFileIfPresent, replaceFile } from '../../../common/files.ts';
import { PAGE_NAMES, type PageFolder, type PageRewrite } from '../page-files.ts';
import { projectSlug, sessionStem } from '../paths.ts';
import {
  conflictCopy,
  createFileCache,
  decodedIfAllowed,
  NO_FILE,
  removeDurably,
  removeTempFiles,
} from './file-cache.ts';

const NAME = /^(?:(?:topics|plans|inbox)\/.+|(?!\.\.$)[^/]+)$/;

export interface PageFilesOptions {
  /** A folder of the user's: its mode is left as it is. Made with the first page. */
  readonly dir: string;
  readonly nodesDir: string;
  /** Held while a page of the inbox changes, which others append to. */
  readonly exclusive?: Mutex;
}

/** The pages of the library: `topics/`, `plans/`, `inbox/` and three files beside them. */
export type PageFiles = Awaited<ReturnType<typeof openPageFiles>>;

/** Files that did not change since the last time are not read again. */
export async function openPageFiles({ dir, nodesDir, exclusive = createMutex() }: PageFilesOptions) {
  const folders = ['topics', 'plans', 'inbox'].map((name) => path.join(dir, name));
  for (const folder of [dir, ...folders]) await removeTempFiles(folder).catch(() => undefined);
  const getName = (file: string): string => path.relative(dir, file).split(path.sep).join('/');
  const caches = folders.map((folder) =>
    createFileCache(folder, (file, text): readonly [string, string | null] => [getName(file), text], decodedIfAllowed),
  );

  async function isWritable(folder: string): Promise<boolean> {
    for (let at = folder; ; at = path.dirname(at)) {
      const stats = await stat(at).catch(orMissing);
      if (stats === null && at !== path.dirname(at)) continue;
      return access(at, constants.W_OK).then(
        () => stats?.isDirectory() === true,
        () => false,
      );
    }
  }

  async function replace({ name, before, after }: PageRewrite): Promise<boolean> {
    const file = path.join(dir, name);
    // Refuse a name that resolves to a path outside its folder.
    if (!NAME.test(name) || getName(file) !== name) return false;
    if ((await readFileIfPresent(file)) !== before) return false;
    if (after === null) {
      await removeDurably(file).catch(orMissing);
      return true;
    }
    await makeDirs(path.dirname(file), 0o700);
    const stats = await stat(file).catch(orMissing);
    return replaceFile(file, before, after, stats === null ? {} : { mode: stats.mode & 0o777 });
  }

  return {
    dir,
    /** What is there. With `problems` where a file, or the folder, cannot be used. */
    async load(): Promise<PageFolder> {
      const texts = new Map<string, string>();
      const problems: Problem[] = [];
      for (const cache of caches) {
        for (const [name, text] of await cache.read()) {
          const file = path.join(dir, name);
          const copied = conflictCopy(name);
          if (copied === null) texts.set(name, text ?? '');
          else problems.push({ file, message: copied });
          // A user may empty an inbox page; later lines of the day are added to it.
          if (text === null && !(name.startsWith('inbox/') && (await readFileIfPresent(file).catch(() => null)) === ''))
            problems.push({ file, message: 'is empty, no UTF-8 text, or not yours to read' });
        }
        problems.push(...cache.others().map((file) => ({ file, message: NO_FILE })));
      }
      let blocked: string | null = null;
      for (const folder of [dir, ...folders.filter((each) => !each.endsWith('plans'))])
        if (blocked === null && !(await isWritable(folder))) blocked = folder;
      for (const name of Object.values(PAGE_NAMES)) {
        const file = path.join(dir, name);
        const text = await readFile(file, 'utf8')
          .catch(orMissing)
          .catch(() => {
            blocked ??= file;
            return null;
          });
        if (text !== null) texts.set(name, text);
      }
      if (blocked !== null) problems.push({ file: blocked, message: 'cannot be written; pages stay as they are' });
      return { texts, problems, isWritable: blocked === null };
    },
    /** Makes the change where the file is as it was before; false, without a change, where somebody edited it. */
    replace: (rewrite: PageRewrite): Promise<boolean> =>
      rewrite.name.startsWith('inbox/') ? exclusive(() => replace(rewrite)) : replace(rewrite),
    /** Address of a session's file, relative to the folder. */
    getAddress({ project, session_id }: { readonly project: string; readonly session_id: string }): string {
      const file = path.join(nodesDir, projectSlug(project), `${sessionStem(session_id)}.md`);
      return getName(file).split('/').map(encodeURIComponent).join('/');
    },
  };
}
