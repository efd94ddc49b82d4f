import { open } from 'node:fs/promises';
import path from 'node:path';
import { createMutex } from '../../common/async.ts';
import { ensureDir, writeFileAtomic } from '../../common/files.ts';

/** A file of lines that grows, 0600, its folder made when it is missing; one work at a time, in the order of the calls. */
export interface JsonlFile {
  /** @param linesFor  told whether the file is empty, as it is for the first and after somebody removed it */
  append(linesFor: (isEmpty: boolean) => readonly string[]): Promise<void>;
  /** Puts these in the place of all lines. */
  replace(linesFor: () => readonly string[]): Promise<void>;
  /** Resolves once all is written. */
  close(): Promise<void>;
}

/** Not synced: a power cut may cost the last lines. */
export function openJsonlFile(file: string): JsonlFile {
  const lock = createMutex();
  return {
    append: (linesFor) =>
      lock(async () => {
        const handle = await openToAppend(file);
        try {
          const lines = linesFor((await handle.stat()).size === 0);
          // Leading newline: a torn line before it stays alone.
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

async function openToAppend(file: string) {
  try {
    return await open(file, 'a', 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    await ensureDir(path.dirname(file));
    return open(file, 'a', 0o600);
  }
}
