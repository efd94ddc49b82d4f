import { mkdir, readFile, realpath, rm, rmdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { createMutex } from '../common/async.ts';
import { CometError } from '../common/errors.ts';
import { backUp, readFileIfPresent, writeFileAtomic } from '../common/files.ts';
import type { HomePaths } from '../common/paths.ts';
import type { OwnValues, Values } from './edit-kind.ts';
import {
  type EditedFile,
  type EditName,
  editKind,
  editsOf,
  type Installs,
  readInstalls,
  textWithoutEdits,
  writeInstalls,
} from './installs.ts';
import { migrateRecords } from './migrate-records.ts';

const OWNER_ONLY = 0o600;
const lockRecord = createMutex();

export interface EditPlan {
  readonly name: EditName;
  /** Where the bytes are: a link is followed. */
  readonly file: string;
  readonly before: string | null;
  readonly after: string;
  readonly values: Values;
}

/** What `applyEdit` would write; changes nothing. @throws CometError `config_invalid` */
export async function planEdit(name: EditName, file: string, values: Values): Promise<EditPlan> {
  const target = await resolveFile(file);
  const before = await readFileIfPresent(target);
  const after = editKind(name).add(before ?? '{}\n', values, target);
  return { name, file: target, before, after, values };
}

/**
 * Records the edit, keeps a copy of the file and writes it. A later edit of the same file keeps the first copy.
 *
 * @throws CometError `config_invalid` when the file changed since it was planned
 */
export async function applyEdit(
  paths: HomePaths,
  plan: EditPlan,
): Promise<{ readonly changed: boolean; readonly backup: string | null }> {
  const { name, file, before, after, values } = plan;
  if (after === before) return { changed: false, backup: null };
  if ((await readFileIfPresent(file)) !== before) {
    throw new CometError('config_invalid', `${file} changed in the meantime; it was left unchanged, try again`);
  }
  const installs = await loadInstalls(paths);
  const known = installs.files.find((edited) => edited.file === file);
  const isFirstBackup = known === undefined && before !== null && editKind(name).isBackedUp;
  const edited: EditedFile = {
    file,
    before: known === undefined ? before : textWithoutEdits(before, known),
    backup: isFirstBackup ? await backUp(file, before) : (known?.backup ?? null),
    mode: known !== undefined && holdsToken(known) ? known.mode : await modeOf(file),
    edits: { ...known?.edits, [name]: mergeValues(known?.edits[name], values) },
  };
  const dirs = before === null ? await createDirs(path.dirname(file), 0o700) : [];
  await writeInstalls(paths, {
    files: [...installs.files.filter((each) => each !== known), edited],
    createdDirs: [...installs.createdDirs, ...dirs],
  });
  await writeFileAtomic(file, after, { mode: holdsToken(edited) ? edited.mode & OWNER_ONLY : edited.mode });
  return { changed: true, backup: edited.backup };
}

/**
 * Removes an edit. Restores the original bytes if no one else changed the file, in any order of undoing; otherwise removes
 * only what is still as it was set.
 *
 * @returns whether the file changed
 * @throws CometError `config_invalid` where the file no longer parses; nothing is changed then
 */
export async function undoEdit(paths: HomePaths, name: EditName, file: string): Promise<boolean> {
  const installs = await loadInstalls(paths);
  const known = installs.files.find((edited) => edited.file === file);
  const own = known?.edits[name];
  if (known === undefined || own === undefined) return false;
  const { [name]: _, ...edits } = known.edits;
  const rest: EditedFile = { ...known, edits };
  const isLast = Object.keys(edits).length === 0;
  const text = await readFileIfPresent(file);
  const before = textWithoutEdits(text, known);
  const after = isLast || text === null ? before : editKind(name).remove(text, own, known.before ?? '', file);
  if (after === null && text !== null) await rm(file);
  if (after !== null && after !== text) {
    const mode = holdsToken(known) ? known.mode : await modeOf(file);
    await writeFileAtomic(file, after, { mode: holdsToken(rest) ? mode & OWNER_ONLY : mode });
  }
  if (isLast && known.backup !== null) await rm(known.backup, { force: true });
  const others = installs.files.filter((each) => each !== known);
  await writeInstalls(paths, { ...installs, files: isLast ? others : [...others, { ...rest, before }] });
  if (after === null) await removeCreatedDirs(paths, path.dirname(file));
  return after !== text;
}

/** Every file with an edit of that name, and the values that were set. */
export async function findEdits(
  paths: HomePaths,
  name: EditName,
): Promise<readonly { readonly file: string; readonly values: Values }[]> {
  const { files } = await loadInstalls(paths);
  return files.flatMap(({ file, edits }) => {
    const own = edits[name];
    if (own === undefined) return [];
    return { file, values: Object.fromEntries(Object.entries(own).map(([key, [value = '']]) => [key, value])) };
  });
}

export async function resolveFile(file: string): Promise<string> {
  return realpath(file).catch(() => path.resolve(file));
}

/**
 * Creates or replaces a file that is comet-cc's as a whole.
 *
 * @throws CometError `unsafe_file` where there is one without its mark
 */
export async function writeOwnFile(
  paths: HomePaths,
  { file, content, mark, mode }: { file: string; content: string | Buffer; mark: string; mode?: number },
): Promise<void> {
  await readOwnFile(file, mark);
  const dirs = await createDirs(path.dirname(file));
  if (dirs.length > 0) {
    const installs = await loadInstalls(paths);
    await writeInstalls(paths, { ...installs, createdDirs: [...installs.createdDirs, ...dirs] });
  }
  await writeFileAtomic(file, content, mode === undefined ? {} : { mode });
}

/** Null where there is none. @throws CometError `unsafe_file` where it has no mark of comet-cc or cannot be read */
export async function readOwnFile(file: string, mark: string): Promise<Buffer | null> {
  const found = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw new CometError('unsafe_file', `${file} cannot be read (${error.code})`, { cause: error });
  });
  if (found === null || found.includes(mark) || found.includes(Buffer.from(mark, 'utf16le'))) return found;
  throw new CometError('unsafe_file', `${file} was not created by comet-cc and was left unchanged; move it away`);
}

export async function removeOwnFile(paths: HomePaths, file: string): Promise<void> {
  await rm(file, { force: true });
  await removeCreatedDirs(paths, path.dirname(file));
}

/** One at a time: of two that migrate records at once, the second would read what is left of them. */
async function loadInstalls(paths: HomePaths): Promise<Installs> {
  return lockRecord(async () => migrateRecords(paths, await readInstalls(paths)));
}

function holdsToken(edited: EditedFile): boolean {
  return editsOf(edited).some(([name]) => editKind(name).holdsToken);
}

function mergeValues(own: OwnValues = {}, values: Values): Record<string, string[]> {
  const merged = Object.entries(values).map(([name, value]) => [name, [...new Set([value, ...(own[name] ?? [])])]]);
  return { ...own, ...Object.fromEntries(merged) };
}

async function modeOf(file: string): Promise<number> {
  const found = await stat(file).catch(() => null);
  return found === null ? OWNER_ONLY : found.mode & 0o777;
}

/** Creates `dir` and its missing parents. Returns those that were missing, the innermost first. */
async function createDirs(dir: string, mode?: number): Promise<string[]> {
  const top = await mkdir(dir, { recursive: true, ...(mode === undefined ? {} : { mode }) });
  if (top === undefined) return [];
  const outermost = await realpath(top);
  const created = [await realpath(dir)];
  while (created.at(-1) !== outermost) created.push(path.dirname(created.at(-1) as string));
  return created;
}

/** Removes `dir` and its parents as far as they were created by an edit and are empty. */
async function removeCreatedDirs(paths: HomePaths, dir: string): Promise<void> {
  const installs = await loadInstalls(paths);
  const removed: string[] = [];
  for (let at = await resolveFile(dir); installs.createdDirs.includes(at); at = path.dirname(at)) {
    const isGone = await rmdir(at).then(
      () => true,
      (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
    );
    if (!isGone) break;
    removed.push(at);
  }
  if (removed.length === 0) return;
  const createdDirs = installs.createdDirs.filter((each) => !removed.includes(each));
  await writeInstalls(paths, { ...installs, createdDirs });
}
