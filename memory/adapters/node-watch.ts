import path from 'node:path';
import { type FSWatcher, watch } from 'chokidar';
import type { NodeWatch, Problem } from '../ports.ts';

/** A file that grows no more for so long has been written to its end. */
const REST_MS = 150;
const POLL_MS = 50;
/** Changes that come together (a folder moved, a checkout) are told together. */
const GATHER_MS = 50;

export interface NodeWatchOptions {
  readonly nodesDir: string;
  readonly briefsDir: string;
  /** Told once when the system lets no more files be watched: edits are then seen at the next start. */
  readonly report: (problem: Problem) => void;
}

/** Watches the markdown files of memory. */
export function createNodeWatch({ nodesDir, briefsDir, report }: NodeWatchOptions): NodeWatch {
  let watcher: FSWatcher | null = null;
  let timer: NodeJS.Timeout | null = null;
  let reported = false;
  const waiting = new Set<string>();

  function failed(error: unknown): void {
    if (reported) return;
    reported = true;
    const message = `not every file can be watched (${(error as Error).message}); hand edits are seen at the next start`;
    report({ file: path.dirname(nodesDir), message });
  }

  return {
    start: (changed) =>
      new Promise((resolve) => {
        watcher = watch([nodesDir, briefsDir], {
          ignoreInitial: true,
          followSymlinks: false,
          awaitWriteFinish: { stabilityThreshold: REST_MS, pollInterval: POLL_MS },
          // Temporary files of atomic writes, of ours and of editors, are none of the user's words.
          ignored: (file, stats) => stats !== undefined && !stats.isDirectory() && !isNodeFile(file, stats.isFile()),
        });
        const tell = (): void => {
          timer = null;
          const files = [...waiting];
          waiting.clear();
          changed(files);
        };
        const note = (file: string): void => {
          waiting.add(file);
          timer ??= setTimeout(tell, GATHER_MS).unref();
        };
        watcher.on('add', note).on('change', note).on('unlink', note).on('error', failed);
        watcher.once('ready', () => resolve());
      }),
    async close() {
      if (timer !== null) clearTimeout(timer);
      timer = null;
      await watcher?.close();
    },
  };
}

function isNodeFile(file: string, isFile: boolean): boolean {
  return isFile && file.endsWith('.md');
}
