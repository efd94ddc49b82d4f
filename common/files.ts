import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import fs, { closeSync, constants, lstatSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { chmod, link, lstat, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { CometError } from './errors.ts';
import { PLATFORM } from './paths.ts';

const PRIVATE_FILE = 0o600;
const PRIVATE_DIR = 0o700;
/** Of what an atomic write, or the replacement of a folder, leaves when it is killed. */
export const TEMPORARY_NAME = /\.[0-9a-f]{12}\.(?:tmp|old)$/;
/** Follows the name of another program's file in the name of its backup. */
const BACKUP_MARK = '.before-comet-cc';

/**
 * Creates `dir` and its missing parents. Node's own never ends where a folder that exists answers ENOENT, as one of an
 * automounter may.
 * @returns the outermost that was missing
 */
export async function makeDirs(dir: string, mode = 0o777): Promise<string | undefined> {
  const make = async (): Promise<string | undefined> => {
    try {
      await mkdir(dir, mode);
      return dir;
    } catch (error) {
      if ((await stat(dir).catch(() => null))?.isDirectory()) return undefined;
      throw error;
    }
  };
  try {
    return await make();
  } catch (error) {
    const parent = path.dirname(dir);
    if (getCode(error) !== 'ENOENT' || parent === dir) throw error;
    const outermost = await makeDirs(parent, mode);
    const made = await make();
    return outermost ?? made;
  }
}

/**
 * Creates `dir` and its missing parents, 0700, or restricts an existing one to 0700.
 * @throws CometError `unsafe_file` when it is not a directory, or not the user's
 */
export async function ensureDir(dir: string): Promise<void> {
  let own = await lstat(dir).catch(() => null);
  if (own?.isDirectory() !== true) {
    await makeDirs(dir, PRIVATE_DIR).catch((error: unknown) => {
      throw unsafe(dir, `cannot be created as a directory (${getCode(error)}); check space and permissions`, error);
    });
    own = await lstat(dir);
  }
  const stats = own.isDirectory() ? own : await stat(dir);
  const owners = [stats.uid, own.uid];
  if (!owners.every(isOurs)) throw unsafe(dir, 'belongs to another user; choose a directory of your own');
  if (!PLATFORM.hasModes || (stats.mode & 0o077) === 0) return;
  if ((stats.mode & 0o1000) !== 0) throw unsafe(dir, 'is shared by everyone; choose a directory of your own');
  await chmod(dir, PRIVATE_DIR);
}

/**
 * Replaces `file` atomically: a reader sees the old bytes or the new ones, also after a power cut.
 * @param options.mode  of the new file; 0600 by default
 */
export async function writeFileAtomic(
  file: string,
  data: string | Uint8Array,
  { mode }: { readonly mode?: number } = {},
): Promise<void> {
  await throughTemporary(file, data, mode, (temporary) => rename(temporary, file));
}

/** As `writeFileAtomic`, for a file in the home: it creates the folder, 0700. @throws CometError `unsafe_file` */
export async function writePrivateFile(file: string, data: string): Promise<void> {
  await ensureDir(path.dirname(file));
  await writeFileAtomic(file, data);
}

/**
 * As `writeFileAtomic`, for a name that the user gave: what is no file, as `/dev/stdout` or a pipe, is written to.
 * @throws CometError `unsafe_file`
 */
export async function writeOutput(file: string, data: string): Promise<void> {
  const stats = await stat(file).catch(() => null);
  const takesWrites = stats !== null && (stats.isCharacterDevice() || stats.isFIFO());
  await (takesWrites ? writeFile(file, data) : writeFileAtomic(file, data)).catch((cause: unknown) => {
    const next = 'name a file in a folder that is there, yours and has space';
    throw unsafe(file, `cannot be written (${getCode(cause)}); ${next}`, cause);
  });
}

/**
 * As `writeFileAtomic`, where `file` still holds `before` once the new bytes are on disk; null for no file.
 * @returns false, without a change, where it holds something else
 */
export async function replaceFile(
  file: string,
  before: string | null,
  data: string,
  { mode }: { readonly mode?: number } = {},
): Promise<boolean> {
  let isSame = false;
  await throughTemporary(file, data, mode, async (temporary) => {
    // Both in one turn: what another program saved in between would be lost.
    isSame = readSmallFile(file) === before;
    if (isSame) fs.renameSync(temporary, file);
  });
  return isSame;
}

/** Appends `text` to `file`, 0600; once it resolves, the text and the name of a new file survive a power cut. */
export const appendDurably = (file: string, text: string): Promise<void> => appendTo(file, () => text, true);

/**
 * Appends to `file`, 0600, which it creates together with its folder.
 * @param getText  `isEmpty` also after the file was deleted
 * @param isDurable  as `appendDurably`
 */
export async function appendTo(file: string, getText: (isEmpty: boolean) => string, isDurable: boolean): Promise<void> {
  await ensureDir(path.dirname(file));
  await using handle = await open(file, 'a', PRIVATE_FILE);
  const isEmpty = (await handle.stat()).size === 0;
  await handle.writeFile(getText(isEmpty));
  if (isDurable) await handle.datasync();
  if (isDurable && isEmpty) await syncDir(path.dirname(file));
}

/** Creates `file`, 0600, complete from its first moment; false, without a change, when the name exists. */
export async function createExclusive(file: string, data: string | Uint8Array): Promise<boolean> {
  try {
    await throughTemporary(file, data, undefined, (temporary) => link(temporary, file));
    return true;
  } catch (error) {
    if (getCode(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Copies another program's file, 0600, under the first free name next to it. */
export function backUp(file: string, text: string): Promise<string> {
  return createFree((number) => `${file}${BACKUP_MARK}${number === 1 ? '' : `.${number - 1}`}`, text);
}

/** Creates the first of these files that does not exist, numbered from 1, as `createExclusive`. Returns its name. */
export async function createFree(getName: (number: number) => string, data: string | Uint8Array): Promise<string> {
  for (let number = 1; ; number += 1) if (await createExclusive(getName(number), data)) return getName(number);
}

/** Null for a file that is missing, or one whose folder is: a folder of the path may have become a file. */
export function orMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
  throw error;
}

/** UTF-8 text; null when the file does not exist. @throws CometError `unsafe_file` for a folder, pipe or device */
export async function readFileIfPresent(file: string): Promise<string | null> {
  return (await readBytes(file))?.toString() ?? null;
}

async function readBytes(file: string): Promise<Buffer | null> {
  const stats = await stat(file).catch(orMissing);
  if (stats === null) return null;
  assertFile(file, stats);
  return readFile(file).catch(orMissing);
}

/** Reading a pipe may wait for ever, and a device may never end. */
function assertFile(file: string, stats: Stats): void {
  if (stats.isDirectory()) throw unsafe(file, 'is a folder; a file was expected');
  if (!stats.isFile()) throw unsafe(file, 'is a pipe or device; a file was expected');
}

/** As `readFileIfPresent`, for a file that is replaced. @throws CometError also `config_invalid` where it is not UTF-8 */
export async function readUtf8(file: string): Promise<string | null> {
  const bytes = await readBytes(file);
  if (bytes === null || isUtf8(bytes)) return bytes?.toString() ?? null;
  throw new CometError('config_invalid', `${file} is not UTF-8 text; it was left unchanged`);
}

/** UTF-8 text, null where there is no file. @throws CometError `unsafe_file` for what else is there, or over 16 MB */
export function readSmallFile(file: string): string | null {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return null;
  assertFile(file, stats);
  if (stats.size > 2 ** 24) throw unsafe(file, 'is larger than 16 MB');
  const bytes = Buffer.alloc(stats.size);
  const handle = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    return bytes.toString('utf8', 0, readSync(handle, bytes));
  } finally {
    closeSync(handle);
  }
}

/** Text of at most `length` bytes from `from` on, which counts from the end where it is negative. */
export async function readPart(file: string, from: number, length: number): Promise<string> {
  await using handle = await open(file, 'r');
  const position = from < 0 ? Math.max(0, (await handle.stat()).size + from) : from;
  const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(length), position });
  return buffer.toString('utf8', 0, bytesRead);
}

export type FileProblem = 'missing' | 'symlink' | 'not_a_file' | 'foreign_owner' | 'open_mode' | 'unreadable';

/** Null when `file` is a regular file of the user's without access for others; otherwise why it is not trusted. */
export const inspectPrivateFile = (file: string): FileProblem | null => inspect(file, (stats) => stats.isFile(), 0o077);

/** The same for a directory, which others may read, not write. */
export const inspectDir = (dir: string): FileProblem | null => inspect(dir, (stats) => stats.isDirectory(), 0o022);

function inspect(file: string, isKind: (stats: Stats) => boolean, forbidden: number): FileProblem | null {
  try {
    const stats = lstatSync(file);
    if (stats.isSymbolicLink()) return 'symlink';
    if (!isKind(stats)) return 'not_a_file';
    if (!isOurs(stats.uid)) return 'foreign_owner';
    return PLATFORM.hasModes && (stats.mode & forbidden) !== 0 ? 'open_mode' : null;
  } catch (error) {
    return getCode(error) === 'ENOENT' ? 'missing' : 'unreadable';
  }
}

/**
 * The secret in `file`, created on first use; concurrent first uses get the same one.
 * @throws CometError `unsafe_file` when it is not a private file of the user's, or empty
 */
export async function readOrCreateSecret(file: string, create: () => string): Promise<string> {
  await ensureDir(path.dirname(file));
  await createExclusive(file, `${create()}\n`);
  const doubt = inspectPrivateFile(file);
  if (doubt !== null) throw unsafe(file, `is not a private file of yours (${doubt}); remove it`);
  const secret = (await readFile(file, 'utf8')).trim();
  if (secret === '') throw unsafe(file, 'is empty; remove it');
  return secret;
}

/** Removes what writes of `file` left that were killed before `olderThanMs`. Returns the removed paths. */
export async function removeLeftovers(file: string, olderThanMs = Number.POSITIVE_INFINITY): Promise<string[]> {
  const names = (await readdir(path.dirname(file)).catch(orMissing)) ?? [];
  const leftovers = names.filter((name) => name.startsWith(`${path.basename(file)}.`) && TEMPORARY_NAME.test(name));
  const found = leftovers.map((name) => path.join(path.dirname(file), name));
  const old = found.filter((each) => (lstatSync(each, { throwIfNoEntry: false })?.mtimeMs ?? 0) <= olderThanMs);
  for (const each of old) await rm(each, { recursive: true, force: true });
  return old;
}

/** Lets renames and new names in `dir` survive a power cut. */
export async function syncDir(dir: string): Promise<void> {
  if (!PLATFORM.syncsDirs) return;
  await using handle = await open(dir, 'r');
  await handle.sync();
}

async function throughTemporary(
  file: string,
  data: string | Uint8Array,
  mode: number | undefined,
  publish: (temporary: string) => Promise<void>,
): Promise<void> {
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    {
      await using handle = await open(temporary, 'wx', PRIVATE_FILE);
      await handle.writeFile(data);
      if (mode !== undefined) await handle.chmod(mode);
      await handle.sync();
    }
    await publish(temporary);
  } catch (error) {
    // Node names the file where it is opened, not where a write fails.
    if (error instanceof Error && !error.message.includes(file)) error.message += ` '${file}'`;
    throw error;
  } finally {
    await rm(temporary, { force: true });
  }
  await syncDir(path.dirname(file));
}

const isOurs = (uid: number): boolean => process.getuid === undefined || process.getuid() === uid;

const getCode = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'unknown';

const unsafe = (file: string, what: string, cause?: unknown): CometError =>
  new CometError('unsafe_file', `${file} ${what}`, { cause });
