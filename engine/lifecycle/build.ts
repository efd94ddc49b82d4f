import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { builtFile } from '../../common/paths.ts';

const LOOK_MS = 5_000;
const PROGRAM = builtFile('bin', 'engine.js');
/** An update writes the program long before its largest package. */
const LAST_WRITTEN = "import('@lancedb/lancedb')";

/** '' while the file is not there. */
async function getStamp(): Promise<string> {
  const stats = await stat(PROGRAM).catch(() => null);
  return stats === null ? '' : `${stats.ino} ${stats.mtimeMs}`;
}

/**
 * Looks whether an update put another build in the place of this one. What this process has not loaded by then is gone.
 * @param onReplaced  called while `isIdle`, once the other build is whole
 */
export function watchBuild(isIdle: () => boolean, onReplaced: () => void): void {
  const own = getStamp();
  let last = '';
  const look = async (): Promise<void> => {
    const before = last;
    last = await getStamp();
    if (last === '' || last !== before || last === (await own) || !isIdle()) return;
    execFile(process.execPath, ['-e', LAST_WRITTEN], { cwd: path.dirname(PROGRAM) }, (error) => {
      if (error === null && isIdle()) onReplaced();
    });
  };
  setInterval(look, LOOK_MS).unref();
}

const RETRY_MS = 600_000;

/**
 * A store that did not open, for a full disk or a native part that failed to load, may open in another process.
 * @param isStoreless  no request or command runs, and memory is off
 */
export function retryStore(isStoreless: () => boolean, onRetry: () => void): void {
  setInterval(() => {
    if (isStoreless()) onRetry();
  }, RETRY_MS).unref();
}
