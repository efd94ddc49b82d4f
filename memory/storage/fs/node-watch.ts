import { realpath, utimes } from 'node:fs/promises';
import path from 'node:path';
import { type FSWatcher, watch } from 'chokidar';
import type { Problem } from '../../../common/errors.ts';

/** Files are told once nothing has happened for so long: who writes in several steps is waited for. */
const REST_MS = 200;
/** Where it never becomes quiet, they are told all the same. */
const LONGEST_MS = 2_000;

export interface NodeWatchOptions {
  readonly nodesDir: string;
  readonly briefsDir: string;
  /** Told once when the system lets no more files be watched: edits are then seen at the next start. */
  readonly report: (problem: Problem) => void;
}

/** Tells when files were changed by someone else. */
export type NodeWatch = ReturnType<typeof createNodeWatch>;

/** Watches the markdown files. chokidar's `awaitWriteFinish` is off: it loses removals that follow a write. */
export function createNodeWatch({ nodesDir, briefsDir, report }: NodeWatchOptions) {
  const waiting = new Set<string>();
  let watcher: FSWatcher | null = null;
  let timer: NodeJS.Timeout | null = null;
  let sinceMs = 0;
  let reported = false;

  function reportFailure(error: unknown): void {
    if (reported) return;
    reported = true;
    const message = `not every file can be watched (${(error as Error).message}); hand edits are seen at the next start`;
    report({ file: path.dirname(nodesDir), message });
  }

  function note(file: string, changed: (files: readonly string[]) => void): void {
    if (waiting.size === 0) sinceMs = performance.now();
    waiting.add(file);
    if (timer !== null) clearTimeout(timer);
    const left = LONGEST_MS - (performance.now() - sinceMs);
    const tell = (): void => {
      const files = [...waiting];
      waiting.clear();
      changed(files);
    };
    timer = setTimeout(tell, Math.max(0, Math.min(REST_MS, left))).unref();
  }

  return {
    /**
     * Resolves when nothing that happens from now on is missed.
     * @param changed  is given the markdown files that were written, moved or removed, once they have come to rest; our
     *   own writes are among them
     */
    async start(changed: (files: readonly string[]) => void): Promise<void> {
      // A link in place of a folder would not be followed.
      const [nodes, briefs] = [await realpath(nodesDir), await realpath(briefsDir)];
      const getName = (file: string): string =>
        file.startsWith(nodes) ? nodesDir + file.slice(nodes.length) : briefsDir + file.slice(briefs.length);
      const seen = (file: string): void => note(getName(file), changed);
      const started = watch([nodes, briefs], {
        ignoreInitial: true,
        followSymlinks: false,
        atomic: false,
        // Temporary files of atomic writes, ours or an editor's, are not memory.
        ignored: (file, stats) =>
          stats !== undefined && !stats.isDirectory() && !(stats.isFile() && file.endsWith('.md')),
      });
      watcher = started;
      started.on('add', seen).on('change', seen).on('unlink', seen).on('error', reportFailure);
      await new Promise<void>((resolve) => started.once('ready', () => resolve()));
      // chokidar lists a directory before it watches it; a touched one is listed again, with what was made in between.
      const touch = (dir: string) => utimes(dir, new Date(), new Date()).catch(() => undefined);
      started.on('addDir', (dir) => void setTimeout(touch, REST_MS, dir).unref());
      for (const dir of [nodesDir, briefsDir]) await touch(dir);
    },
    async close() {
      await watcher?.close();
      if (timer !== null) clearTimeout(timer);
      timer = null;
    },
  };
}
