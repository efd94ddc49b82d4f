import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { BACKUP_MARK, readFileIfPresent, writeFileAtomic } from '../common/files.ts';
import type { HomePaths } from '../common/paths.ts';
import { removeMadeFolder } from './created-dirs.ts';
import { leftOf } from './json-splice.ts';

export interface Undoing {
  readonly paths: HomePaths;
  readonly file: string;
  /** Where the text from before is; null where there was no file, left out where that is not known. */
  readonly backup?: string | null;
  /** Of the file once it is as it was; else the one it has. */
  readonly mode?: number;
  /** Takes ours out of a text of the file, whenever it is from; the same text where it holds nothing of ours. */
  readonly without: (text: string, original: string | null) => string;
}

/**
 * Takes our edit out of a file of somebody else's, and out of what others of our edits kept of it before theirs, so
 * that they may be undone in any order. The backup is removed.
 *
 * @returns whether the file was changed
 * @throws what `without` throws; then nothing is changed
 */
export async function undoEdit({ paths, file, backup, mode, without }: Undoing): Promise<boolean> {
  const now = await readFileIfPresent(file);
  const original = await readBackup(backup);
  const left = (text: string): string | null => {
    const cleaned = without(text, original);
    return cleaned === text || backup === undefined ? cleaned : leftOf(cleaned, original);
  };
  const after = now === null || now === original ? now : left(now);
  for (const kept of await backupsOf(file)) {
    const text = kept === backup ? null : await readFileIfPresent(kept);
    if (text !== null && left(text) !== text) await put(kept, left(text));
  }
  if (after !== now) await put(file, after, mode ?? (await stat(file)).mode & 0o777);
  if (after === null && now !== null) await removeMadeFolder(paths, path.dirname(file));
  if (typeof backup === 'string') await rm(backup, { force: true });
  return after !== now;
}

async function readBackup(backup: string | null | undefined): Promise<string | null> {
  return typeof backup === 'string' ? await readFileIfPresent(backup) : null;
}

async function put(file: string, text: string | null, mode = 0o600): Promise<void> {
  if (text === null) await rm(file);
  else await writeFileAtomic(file, text, { mode });
}

async function backupsOf(file: string): Promise<string[]> {
  const [folder, prefix] = [path.dirname(file), path.basename(file) + BACKUP_MARK];
  const names = await readdir(folder).catch((): string[] => []);
  return names.filter((name) => name.startsWith(prefix)).map((name) => path.join(folder, name));
}
