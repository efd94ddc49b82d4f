import { open } from 'node:fs/promises';
import path from 'node:path';
import { createMutex } from '../../common/async.ts';
import { ensureDir, writeFileAtomic } from '../../common/files.ts';

/** An append-only file of lines with mode 0600. Operations run one at a time, in the order of the calls. */
export interface JsonlFile {
  /** @param linesFor  `isEmpty` is true for a new file and after the file was deleted */
  append(linesFor: (isEmpty: boolean) => readonly string[]): Promise<void>;
  replace(linesFor: () => readonly string[]): Promise<void>;
  /** Resolves once everything is written. */
  close(): Promise<void>;
}

/** Creates the file and its directory on the first write. Not synced: a power cut may lose the last lines. */
export function openJsonlFile(file: string): JsonlFile {
  const lock = createMutex();
  return {
    append: (linesFor) =>
      lock(async () => {
        const handle = await openForAppend(file);
        try {
          const lines = linesFor((await handle.stat()).size === 0);
          // The leading newline separates the line from a torn line before it.
          await handle.appendFile(lines.map((line) => `\n${line}`).join(''));
        } finally {
          await handle.close();
        }
      }),
    replace: (linesFor) =>
      lock(async () => {
        await ensureDir(path.dirname(file));
        await writeFileAtomic(file, linesFor().join('\n'));
      }),
    close: () => lock(async () => {}),
  };
}

async function openForAppend(file: string) {
  try {
    return await open(file, 'a', 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    await ensureDir(path.dirname(file));
    return open(file, 'a', 0o600);
  }
}
