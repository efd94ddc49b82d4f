import { rm } from 'node:fs/promises';
import { z } from 'zod';
import { CometError } from '../common/errors.ts';
import { ensureDir, readFileIfPresent, writeFileAtomic } from '../common/files.ts';
import type { HomePaths } from '../common/paths.ts';
import { envEntries, hookEntries } from './claude-code/entries.ts';
import type { EditKind, OwnValues } from './edit-kind.ts';
import { EDITORS, type EditorName } from './editors/editors.ts';
import { variableEntries } from './editors/entries.ts';
import { isSameJson } from './json-text.ts';

export type EditName = 'env' | 'hooks' | EditorName;

export function editKind(name: EditName): EditKind {
  if (name === 'env') return envEntries;
  return name === 'hooks' ? hookEntries : variableEntries;
}

const EditedFile = z.object({
  file: z.string(),
  /** The text without any edit; null where there was no file. */
  before: z.string().nullable(),
  /** Copy of the file beside it. */
  backup: z.string().nullable(),
  /** Of the file without any edit. */
  mode: z.int(),
  edits: z.partialRecord(z.enum(['env', 'hooks', ...EDITORS]), z.record(z.string(), z.array(z.string()))),
});
export type EditedFile = z.infer<typeof EditedFile>;

const Installs = z.object({ files: z.array(EditedFile), createdDirs: z.array(z.string()) });
/** What was changed outside of the home: files of other programs, and directories that were created. */
export type Installs = z.infer<typeof Installs>;

export function editsOf({ edits }: Pick<EditedFile, 'edits'>): [EditName, OwnValues][] {
  return Object.entries(edits) as [EditName, OwnValues][];
}

/**
 * `text` of an edited file without any edit: the very bytes from before where nothing else changed since, null where
 * no file was there and none is needed.
 *
 * @throws CometError `config_invalid`
 */
export function textWithoutEdits(text: string | null, edited: EditedFile): string | null {
  if (text === null) return null;
  const before = edited.before ?? '';
  const rest = editsOf(edited).reduce(
    (left, [name, own]) => editKind(name).remove(left, own, before, edited.file),
    text,
  );
  return isSameJson(rest, before) ? edited.before : rest;
}

/** @throws CometError `config_invalid` when the record is damaged */
export async function readInstalls(paths: HomePaths): Promise<Installs> {
  const text = await readFileIfPresent(paths.installsFile);
  return text === null ? { files: [], createdDirs: [] } : parseRecord(Installs, text, paths.installsFile);
}

export async function writeInstalls(paths: HomePaths, installs: Installs): Promise<void> {
  if (installs.files.length + installs.createdDirs.length === 0) return rm(paths.installsFile, { force: true });
  await ensureDir(paths.home);
  await writeFileAtomic(paths.installsFile, `${JSON.stringify(installs, null, 2)}\n`);
}

export function parseRecord<T>(schema: z.ZodType<T>, text: string, file: string): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    const next = 'restore the settings that comet-cc changed by hand, then remove this file';
    throw new CometError('config_invalid', `${file} is damaged: ${next}`, { cause: error });
  }
}
