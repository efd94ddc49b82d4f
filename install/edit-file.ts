import { existsSync } from 'node:fs';
import { readFile, readlink, realpath, rm, rmdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { createMutex } from '../common/async.ts';
import { CometError } from '../common/errors.ts';
import {
  backUp,
  makeDirs,
  readFileIfPresent,
  readUtf8,
  removeLeftovers,
  replaceFile,
  writeFileAtomic,
} from '../common/files.ts';
import { ancestors, type HomePaths } from '../common/paths.ts';
import { parseJson } from '../common/text.ts';
import { envEntries, hookEntries, pluginEntries, statuslineEntry } from './claude-code/entries.ts';
import { EDITORS, type EditorName } from './editors/editors.ts';
import { variableEntries } from './editors/entries.ts';
import { type EditKind, getValueAt, isSameJson, type OwnValues, removeAt, setAt, type Values } from './json-text.ts';
import { markedBlock } from './marked-block.ts';

const OWNER_ONLY = 0o600;
const lockRecord = createMutex();

/** What `applyEdit` would write; changes nothing. `file` is where the bytes are. @throws CometError `config_invalid` */
export async function planEdit(name: EditName, file: string, values: Values) {
  const target = await resolveFile(file);
  const before = await readUtf8(target);
  const { add, isText } = editKind(name);
  // Claude Code and editors read a file without text as one without settings.
  const after = add((isText || before?.trim() ? before : '{}\n') ?? '', values, target);
  return { name, file: target, before, after, values };
}

/**
 * Records the edit, keeps a copy of the file and writes it. A later edit of the same file keeps the first copy.
 * @throws CometError `config_invalid` when the file changed since it was planned
 */
export async function applyEdit(
  paths: HomePaths,
  { name, file, before, after, values }: Awaited<ReturnType<typeof planEdit>>,
) {
  if (after === before) return { changed: false, backup: null };
  if ((await readUtf8(file)) !== before) throw changed(file);
  const record = (await loadInstalls(paths)).files.find((edited) => edited.file === file);
  const isFirstBackup = record === undefined && before !== null && !editKind(name).skipsBackup;
  const edited: EditedFile = {
    file,
    before: record === undefined ? before : textWithoutEdits(before, record),
    backup: isFirstBackup ? await backUp(file, before) : (record?.backup ?? null),
    mode: record !== undefined && holdsToken(record) ? record.mode : await getMode(file),
    edits: { ...record?.edits, [name]: editKind(name).isText ? {} : mergeValues(record?.edits[name], values) },
  };
  const dirs = before === null ? await createDirs(path.dirname(file), 0o700) : [];
  await changeInstalls(paths, ({ files, createdDirs }) => {
    const now = files.find((each) => each.file === file);
    if (!isDeepStrictEqual(now, record)) throw changed(file);
    return { files: [...files.filter((each) => each !== now), edited], createdDirs: [...createdDirs, ...dirs] };
  }).catch(async (error: unknown) => {
    if (isFirstBackup) await rm(edited.backup as string, { force: true });
    throw error;
  });
  const mode = holdsToken(edited) ? edited.mode & OWNER_ONLY : edited.mode;
  if (!(await replaceFile(file, before, after, { mode }))) throw changed(file);
  return { changed: true, backup: edited.backup };
}

/** Another process edits the file too. */
const changed = (file: string): CometError =>
  new CometError('config_invalid', `${file} changed in the meantime; it was left unchanged, try again`);

/**
 * Removes an edit. Restores the original bytes if no one else changed the file, in any order of undoing; otherwise removes
 * only what is still as it was set.
 * @param moved  where the file may be now
 * @returns whether the file changed
 * @throws CometError `config_invalid` where the file no longer parses; nothing is changed then
 */
export async function undoEdit(paths: HomePaths, name: EditName, file: string, moved: string[] = []): Promise<boolean> {
  const record = (await loadInstalls(paths)).files.find((edited) => edited.file === file);
  const own = record?.edits[name];
  if (record === undefined || own === undefined) return false;
  const { [name]: _, ...edits } = record.edits;
  const rest: EditedFile = { ...record, edits };
  const isLast = Object.keys(edits).length === 0;
  const text = await readUtf8(file);
  const before = textWithoutEdits(text, record);
  const after = isLast || text === null ? before : editKind(name).remove(text, own, record.before ?? '', file);
  const target = await resolveFile(file);
  if (after === null && text !== null) await rm(target);
  if (after !== null && after !== text) {
    const mode = holdsToken(record) ? record.mode : await getMode(file);
    await writeFileAtomic(target, after, { mode: holdsToken(rest) ? mode & OWNER_ONLY : mode });
  }
  // Of settings that were moved, it went along with their folder.
  const besides = (to: string): string => path.join(path.dirname(to), path.basename(record.backup as string));
  const backups = record.backup === null ? [] : [record.backup, ...(text === null ? moved.map(besides) : [])];
  if (isLast) for (const backup of backups) await rm(backup, { force: true });
  await changeInstalls(paths, ({ files, createdDirs }) => {
    const others = files.filter((each) => each.file !== file);
    return { createdDirs, files: isLast ? others : [...others, { ...rest, before }] };
  });
  await removeLeftovers(target);
  await removeCreatedDirs(paths);
  return after !== text;
}

/** Every file with an edit of that name, and the values that were set. */
export async function findEdits(paths: HomePaths, name: EditName) {
  const { files } = await loadInstalls(paths);
  return files.flatMap(({ file, before, edits }) => {
    const own = edits[name];
    if (own === undefined) return [];
    const values: Values = Object.fromEntries(Object.entries(own).map(([key, [value = '']]) => [key, value]));
    return [{ file, before, values }];
  });
}

export async function resolveFile(file: string): Promise<string> {
  const target = await readlink(file).catch(() => path.resolve(file));
  return realpath(file).catch(() => path.resolve(path.dirname(file), target));
}

/**
 * Creates or replaces a file that is comet-cc's as a whole.
 * @throws CometError `unsafe_file` where there is one without its mark
 */
export async function writeOwnFile(
  paths: HomePaths,
  { file, content, mark, mode }: { file: string; content: string | Buffer; mark: string; mode?: number },
): Promise<void> {
  await readOwnFile(file, mark);
  const dirs = await createDirs(path.dirname(file));
  if (dirs.length > 0) await changeInstalls(paths, (now) => ({ ...now, createdDirs: [...now.createdDirs, ...dirs] }));
  await writeFileAtomic(file, content, mode === undefined ? {} : { mode });
}

/** Null where there is none. @throws CometError `unsafe_file` where it has no mark of comet-cc or cannot be read */
export async function readOwnFile(file: string, mark: string): Promise<Buffer | null> {
  const content = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw new CometError('unsafe_file', `${file} cannot be read (${error.code})`, { cause: error });
  });
  if (content === null || content.includes(mark)) return content;
  throw new CometError('unsafe_file', `${file} was not created by comet-cc and was left unchanged; move it away`);
}

export async function removeOwnFile(paths: HomePaths, file: string): Promise<void> {
  await rm(file, { force: true });
  await removeCreatedDirs(paths);
}

/** One at a time: of two that migrate records at once, the second would read what is left of them. */
async function loadInstalls(paths: HomePaths): Promise<Installs> {
  return lockRecord(async () => {
    return migrateRecords(paths, parseInstalls(paths, await readFileIfPresent(paths.installsFile)));
  });
}

function parseInstalls({ installsFile }: HomePaths, text: string | null): Installs {
  return text === null ? { files: [], createdDirs: [] } : parseRecord(Installs, text, installsFile);
}

const holdsToken = (edited: EditedFile): boolean => getEdits(edited).some(([name]) => editKind(name).holdsToken);

function mergeValues(own: OwnValues = {}, values: Values): Record<string, string[]> {
  const merged = Object.entries(values).map(([name, value]) => [name, [...new Set([value, ...(own[name] ?? [])])]]);
  return { ...own, ...Object.fromEntries(merged) };
}

async function getMode(file: string): Promise<number> {
  const stats = await stat(file).catch(() => null);
  return stats === null ? OWNER_ONLY : stats.mode & 0o777;
}

/** Creates `dir` and its missing parents. Returns those that were missing. */
async function createDirs(dir: string, mode?: number): Promise<string[]> {
  const top = await makeDirs(dir, mode);
  const outermost = top === undefined ? null : await realpath(top);
  return outermost === null ? [] : ancestors(await realpath(dir)).filter((each) => each.startsWith(outermost));
}

/** Removes the directories that were created by an edit and are empty. */
export async function removeCreatedDirs(paths: HomePaths): Promise<void> {
  const { createdDirs } = await loadInstalls(paths);
  for (const dir of createdDirs.toSorted((a, b) => b.length - a.length)) await rmdir(dir).catch(() => undefined);
  if (createdDirs.every((dir) => existsSync(dir))) return;
  await changeInstalls(paths, (now) => ({ ...now, createdDirs: now.createdDirs.filter((dir) => existsSync(dir)) }));
}

const KINDS = {
  ...{ env: envEntries, hooks: hookEntries, statusline: statuslineEntry, plugin: pluginEntries },
  library: markedBlock,
};
export type EditName = keyof typeof KINDS | EditorName;

export const editKind = (name: EditName): EditKind => KINDS[name as keyof typeof KINDS] ?? variableEntries;

const EditedFile = z.object({
  file: z.string(),
  /** The text without any edit; null where there was no file. */
  before: z.string().nullable(),
  /** Copy of the file beside it. */
  backup: z.string().nullable(),
  /** Of the file without any edit. */
  mode: z.int(),
  edits: z.partialRecord(
    z.enum(['env', 'hooks', 'statusline', 'plugin', 'library', ...EDITORS]),
    z.record(z.string(), z.array(z.string())),
  ),
});
type EditedFile = z.infer<typeof EditedFile>;

const Installs = z.object({ files: z.array(EditedFile), createdDirs: z.array(z.string()) });
/** What was changed outside of the home: files of other programs, and directories that were created. */
type Installs = z.infer<typeof Installs>;

function getEdits({ edits }: Pick<EditedFile, 'edits'>): [EditName, OwnValues][] {
  return Object.entries(edits) as [EditName, OwnValues][];
}

/**
 * `text` of an edited file without any edit: the very bytes from before where nothing else changed since, null where
 * no file was there and none is needed.
 * @throws CometError `config_invalid`
 */
function textWithoutEdits(text: string | null, edited: EditedFile): string | null {
  if (text === null) return null;
  const before = edited.before ?? '';
  const rest = getEdits(edited).reduce(
    (left, [name, own]) => editKind(name).remove(left, own, before, edited.file),
    text,
  );
  const isText = getEdits(edited).some(([name]) => editKind(name).isText);
  const isSame = isText ? rest.trimEnd() === before.trimEnd() : isSameJson(rest, before);
  return isSame ? edited.before : rest;
}

/** Another process may change the record at the same time: `change` is called again where one did. */
async function changeInstalls(paths: HomePaths, change: (installs: Installs) => Installs): Promise<void> {
  await makeDirs(paths.home, 0o700);
  for (let isWritten = false; !isWritten; ) {
    const text = await readFileIfPresent(paths.installsFile);
    const installs = change(parseInstalls(paths, text));
    if (installs.files.length + installs.createdDirs.length === 0) return rm(paths.installsFile, { force: true });
    isWritten = await replaceFile(paths.installsFile, text, `${JSON.stringify(installs, null, 2)}\n`);
  }
}

function parseRecord<T>(schema: z.ZodType<T>, text: string, file: string): T {
  const { data, error: cause } = schema.safeParse(parseJson(text));
  if (data !== undefined) return data;
  const next = 'restore the settings that comet-cc changed by hand, then remove this file';
  throw new CometError('config_invalid', `${file} is damaged: ${next}`, { cause });
}

const Backup = z.looseObject({ file: z.string(), backup: z.string().nullable() });
const SettingsRecord = Backup.extend({
  mode: z.int(),
  /** `ours`: what is set now; `past`: what was set before; `former`: what the user had there. */
  values: z.array(
    z.object({
      name: z.string(),
      ours: z.string(),
      former: z.unknown().optional(),
      past: z.array(z.string()).optional(),
    }),
  ),
});
type SettingsRecord = z.infer<typeof SettingsRecord>;
const EditorRecord = EditedFile.pick({ file: true, before: true, mode: true });
const EditorsRecord = z.partialRecord(
  z.enum(EDITORS),
  EditorRecord.extend({ variables: z.record(z.string(), z.string()) }),
);

/**
 * Adds what version 0.1.0 recorded in a file for each kind of change, and removes those files.
 * @throws CometError `config_invalid` when one is damaged
 */
async function migrateRecords(paths: HomePaths, installs: Installs): Promise<Installs> {
  const getFile = (name: string): string => path.join(paths.home, name);
  const read = async <T>(name: string, schema: z.ZodType<T>): Promise<T | null> => {
    const text = await readFileIfPresent(getFile(name));
    return text === null ? null : parseRecord(schema, text, getFile(name));
  };
  const [settings, hooks, editors, dirs] = [
    await read('settings-edit.json', SettingsRecord),
    await read('hooks-edit.json', z.array(Backup)),
    await read('editors.json', EditorsRecord),
    await read('folders-made.json', z.array(z.string())),
  ];
  if (settings === null && hooks === null && editors === null && dirs === null) return installs;
  const migrated: EditedFile[] = [];
  const unclean: string[] = [];
  for (const file of new Set([settings, ...(hooks ?? [])].flatMap((record) => record?.file ?? []))) {
    const env = settings?.file === file ? settings : null;
    const { edited, extra } = await mergeRecords(file, env, hooks?.find((record) => record.file === file) ?? null);
    migrated.push(edited);
    if (extra !== null) unclean.push(extra);
  }
  for (const editor of EDITORS) {
    const record = editors?.[editor];
    if (record === undefined) continue;
    const own = Object.entries(record.variables).map(([name, value]) => [name, [value]]);
    const { file, before, mode } = record;
    migrated.push({ file, before, backup: null, mode, edits: { [editor]: Object.fromEntries(own) } });
  }
  const added = migrated.filter(({ file }) => !installs.files.some((record) => record.file === file));
  const merged = {
    files: [...installs.files, ...added],
    createdDirs: [...new Set([...installs.createdDirs, ...(dirs ?? [])])],
  };
  await changeInstalls(paths, () => merged);
  const replaced = ['settings-edit.json', 'hooks-edit.json', 'editors.json', 'folders-made.json'].map(getFile);
  for (const file of [...unclean, ...replaced]) await rm(file, { force: true });
  return merged;
}

/** Each record named a backup of its own; the later of two holds the edit that was made first. */
async function mergeRecords(file: string, settings: SettingsRecord | null, hooks: z.infer<typeof Backup> | null) {
  const edits = {
    ...(settings === null
      ? {}
      : { env: Object.fromEntries(settings.values.map(({ name, ours, past = [] }) => [name, [ours, ...past]])) }),
    ...(hooks === null ? {} : { hooks: {} }),
  };
  const mode = settings?.mode ?? (await getMode(file));
  const backups = [settings, hooks].flatMap((record) => (record === null ? [] : [record.backup]));
  const kept = await Promise.all(
    backups.map(async (backup) => ({ backup, before: backup === null ? null : await readFileIfPresent(backup) })),
  );
  const isClean = (text: string | null): boolean =>
    text === null || getEdits({ edits }).every(([name, own]) => editKind(name).remove(text, own, '', file) === text);
  const [first, second] = kept.toSorted((a, b) => Number(isClean(b.before)) - Number(isClean(a.before)));
  const edited: EditedFile = { file, before: null, backup: null, mode: mode & 0o777, edits, ...first };
  const before = second === undefined ? edited.before : textWithoutEdits(second.before, edited);
  return { edited: { ...edited, before: restoreFormer(before, settings) }, extra: second?.backup ?? null };
}

/** A value that the user set in place of an earlier edit is in the record alone. */
function restoreFormer(before: string | null, settings: SettingsRecord | null): string | null {
  let text = before ?? '';
  for (const { name, former } of settings?.values ?? []) {
    if (isDeepStrictEqual(getValueAt(text, ['env', name]), former)) continue;
    text = former === undefined ? removeAt(text, ['env', name]) : setAt(text || '{}', ['env', name], former);
  }
  return text === '' ? before : text;
}
