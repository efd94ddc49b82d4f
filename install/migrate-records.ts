import { rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { readFileIfPresent } from '../common/files.ts';
import type { HomePaths } from '../common/paths.ts';
import { EDITORS } from './editors/editors.ts';
import {
  type EditedFile,
  editKind,
  editsOf,
  type Installs,
  parseRecord,
  textWithoutEdits,
  writeInstalls,
} from './installs.ts';
import { removeAt, setAt, valueAt } from './json-text.ts';

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
const EditorsRecord = z.partialRecord(
  z.enum(EDITORS),
  z.object({
    file: z.string(),
    before: z.string().nullable(),
    mode: z.int(),
    variables: z.record(z.string(), z.string()),
  }),
);

/**
 * Adds what version 0.1.0 recorded in a file for each kind of change, and removes those files.
 *
 * @throws CometError `config_invalid` when one is damaged
 */
export async function migrateRecords(paths: HomePaths, installs: Installs): Promise<Installs> {
  const fileOf = (name: string): string => path.join(paths.home, name);
  const read = async <T>(name: string, schema: z.ZodType<T>): Promise<T | null> => {
    const text = await readFileIfPresent(fileOf(name));
    return text === null ? null : parseRecord(schema, text, fileOf(name));
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
  const added = migrated.filter(({ file }) => !installs.files.some((known) => known.file === file));
  const merged = {
    files: [...installs.files, ...added],
    createdDirs: [...new Set([...installs.createdDirs, ...(dirs ?? [])])],
  };
  await writeInstalls(paths, merged);
  const replaced = ['settings-edit.json', 'hooks-edit.json', 'editors.json', 'folders-made.json'].map(fileOf);
  for (const file of [...unclean, ...replaced]) await rm(file, { force: true });
  return merged;
}

/** Each record named a backup of its own; the later of two holds the edit that was made first. */
async function mergeRecords(
  file: string,
  settings: SettingsRecord | null,
  hooks: z.infer<typeof Backup> | null,
): Promise<{ readonly edited: EditedFile; readonly extra: string | null }> {
  const edits = {
    ...(settings === null ? {} : { env: ownValues(settings) }),
    ...(hooks === null ? {} : { hooks: {} }),
  };
  const mode = settings?.mode ?? (await stat(file).catch(() => null))?.mode ?? 0o600;
  const backups = [settings, hooks].flatMap((record) => (record === null ? [] : [record.backup]));
  const kept = await Promise.all(
    backups.map(async (backup) => ({ backup, before: backup === null ? null : await readFileIfPresent(backup) })),
  );
  const isClean = (text: string | null): boolean =>
    text === null || editsOf({ edits }).every(([name, own]) => editKind(name).remove(text, own, '', file) === text);
  const [first, second] = kept.toSorted((a, b) => Number(isClean(b.before)) - Number(isClean(a.before)));
  const edited: EditedFile = { file, before: null, backup: null, mode: mode & 0o777, edits, ...first };
  const before = second === undefined ? edited.before : textWithoutEdits(second.before, edited);
  return { edited: { ...edited, before: restoreFormer(before, settings) }, extra: second?.backup ?? null };
}

function ownValues({ values }: SettingsRecord): Record<string, string[]> {
  return Object.fromEntries(values.map(({ name, ours, past = [] }) => [name, [ours, ...past]]));
}

/** A value that the user set in place of an earlier edit is in the record alone. */
function restoreFormer(before: string | null, settings: SettingsRecord | null): string | null {
  let text = before ?? '';
  for (const { name, former } of settings?.values ?? []) {
    if (isDeepStrictEqual(valueAt(text, ['env', name]), former)) continue;
    text = former === undefined ? removeAt(text, ['env', name]) : setAt(text || '{}', ['env', name], former);
  }
  return text === '' ? before : text;
}
