import { existsSync, type FSWatcher, watch } from 'node:fs';
import path from 'node:path';
import type { HomePaths } from '../../../common/paths.ts';
import { libraryPaths } from '../../../memory/index.ts';

/** Folders are looked for after this, and with each change of another. */
const FOUND_MS = 5_000;

/** Of what the library view shows. @param dir  `library.dir` */
export function libraryFolders(dir: string, paths: Pick<HomePaths, 'libraryDir' | 'factsDir'>): string[] {
  const { root, tasksDir, inboxDir } = libraryPaths(dir, paths);
  const tasks = ['active', 'blocked', 'done'].map((status) => path.join(tasksDir, status));
  return [root, path.join(root, 'topics'), inboxDir, ...tasks, paths.factsDir];
}

/**
 * Reports every change of a file directly in these folders. A folder that is missing is followed once it
 * is there; where the system allows no more watches, nothing is reported.
 * @returns ends it
 */
export function followFolders(folders: readonly string[], changed: () => void): () => void {
  const watchers = new Map<string, FSWatcher>();

  const lose = (folder: string): void => {
    watchers.get(folder)?.close();
    watchers.delete(folder);
  };

  function follow(folder: string): void {
    try {
      const watcher = watch(folder, { persistent: false }, () => {
        look();
        changed();
      });
      watchers.set(folder, watcher);
      watcher.on('error', () => lose(folder));
    } catch {
      // Missing, or too many watches.
    }
  }

  const look = (): void => {
    for (const folder of folders) {
      if (!existsSync(folder)) lose(folder);
      else if (!watchers.has(folder)) follow(folder);
    }
  };
  look();
  const timer = setInterval(look, FOUND_MS).unref();
  return () => {
    clearInterval(timer);
    for (const watcher of watchers.values()) watcher.close();
  };
}
