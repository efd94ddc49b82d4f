import { isUtf8 } from 'node:buffer';
import { lstat, readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { ensureDir, orMissing, syncDir, TEMPORARY_NAME } from '../../../common/files.ts';
import { slices } from '../../../common/map.ts';

export const NO_FILE = 'is no file but a link, folder or device; it is not read';
/** What is wrong with what Dropbox, Nextcloud and Syncthing make of a file that was changed in two places; else null. */
export const conflictCopy = (file: string): string | null =>
  /\.sync-conflict-\d{8}-\d{6}|\([^()/\\]{0,99}conflicted copy[^()/\\]{0,99}\)/i.test(file)
    ? 'is a conflict copy of a synchronized file; it is not read: merge the two, then remove it'
    : null;
/** A file written again within the same tick of the disk's clock carries the same time stamp. */
const TICK_MS = 100;
const AT_ONCE = 32;

/** In the trash, or among the versions, of a program that edits or synchronizes the folder, or a file of its own. */
export const isHidden = (dir: string, file: string): boolean => file.includes(`${path.sep}.`, dir.length);

/**
 * Markdown files below a directory that are not hidden, each parsed again only after a change.
 * @param parse  given null where the file is not UTF-8, and what the file was before, where that is known
 * @param decode  how a file is read
 */
export function createFileCache<T>(
  dir: string,
  parse: (file: string, text: string | null, before?: T) => T,
  decode = decoded,
) {
  const entries = new Map<string, { readonly stamp: string; readonly value: T }>();
  const forgotten = new Set<string>();
  let others: readonly string[] = [];
  let complete = false;

  async function look(file: string): Promise<void> {
    const startedMs = Date.now();
    const stats = await lstat(file, { bigint: true }).catch(orMissing);
    const stamp = stats === null ? '' : [stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join();
    if (stats !== null && entries.get(file)?.stamp === stamp) return;
    const text = stats?.isFile() ? await decode(file) : null;
    if (text === null) return void entries.delete(file);
    const settled = stats !== null && startedMs - Number(stats.ctimeMs) > TICK_MS;
    const value = parse(file, text === '' ? null : text, entries.get(file)?.value);
    entries.set(file, { stamp: settled ? stamp : 'fresh', value });
  }

  return {
    /** In order of their names, longer ones last. With `only`, no other file is looked at but those that `forget` named. */
    async read(only?: readonly string[]): Promise<readonly T[]> {
      const isPartial = complete && only !== undefined;
      const found = isPartial ? null : await filesAndOthers(dir, isMarkdown);
      const isShown = (file: string): boolean => file.startsWith(dir + path.sep) && !isHidden(dir, file);
      others = found?.others.filter(isShown) ?? others;
      const wanted = new Set([...(found?.files ?? only ?? []).filter(isShown), ...forgotten]);
      if (!isPartial) for (const file of entries.keys()) if (!wanted.has(file)) entries.delete(file);
      forgotten.clear();
      await inParallel([...wanted], look);
      complete = true;
      return [...entries].sort(([a], [b]) => (a.slice(0, -3) < b.slice(0, -3) ? -1 : 1)).map(([, { value }]) => value);
    },
    /** Of the last whole read: links, folders and devices with the name of a markdown file. */
    others: (): readonly string[] => others,
    /** The next read looks at this file, whatever it is asked for. */
    forget: (file: string): void => void forgotten.add(file),
  };
}

/** Null when there is no such file, '' when it is empty or not UTF-8. */
export async function decoded(file: string): Promise<string | null> {
  const bytes = await readFile(file).catch(orMissing);
  if (bytes === null) return null;
  return isUtf8(bytes) ? bytes.toString() : '';
}

/** For a file that this user may not read. */
export function orDenied(error: NodeJS.ErrnoException): '' {
  if (error.code === 'EACCES' || error.code === 'EPERM') return '';
  throw error;
}

/** Like `decoded`, but '' where the user may not read the file. */
export const decodedIfAllowed = (file: string): Promise<string | null> => decoded(file).catch(orDenied);

export async function filesBelow(dir: string, wanted: (name: string) => boolean): Promise<string[]> {
  return (await filesAndOthers(dir, wanted)).files;
}

async function filesAndOthers(dir: string, wanted: (name: string) => boolean) {
  const entries = (await readdir(dir, { recursive: true, withFileTypes: true }).catch(orMissing)) ?? [];
  const getPaths = (isFile: boolean): string[] =>
    entries
      .filter((entry) => entry.isFile() === isFile && wanted(entry.name))
      .map((entry) => path.join(entry.parentPath, entry.name))
      .sort();
  return { files: getPaths(true), others: getPaths(false) };
}

/** Makes sure that a folder of the home is there, 0700, without what a crash left in it. */
export async function openDir(dir: string): Promise<void> {
  await ensureDir(dir);
  await removeTempFiles(dir);
}

/** A crash between write and rename leaves a temporary file, which may hold removed text. */
export async function removeTempFiles(dir: string): Promise<void> {
  const files = await filesBelow(dir, (name) => TEMPORARY_NAME.test(name));
  await Promise.all(files.map((file) => rm(file, { force: true })));
}

/** Removes a file that may be missing; after a power cut it is still gone. */
export async function removeDurably(file: string): Promise<void> {
  await rm(file, { force: true });
  await syncDir(path.dirname(file));
}

/** Rejects only after all work has ended, so that no write overlaps with the next attempt. */
export async function inParallel(files: readonly string[], work: (file: string) => Promise<void>): Promise<void> {
  for (const some of slices(files, AT_ONCE)) {
    for (const end of await Promise.allSettled(some.map(work))) if (end.status === 'rejected') throw end.reason;
  }
}

export const isMarkdown = (name: string): boolean => name.endsWith('.md');
