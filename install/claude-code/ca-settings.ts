import { realpath, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { CometError } from '../../common/errors.ts';
import { backUp, ensureDir, readFileIfPresent, writeFileAtomic } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { makeFolder } from '../created-dirs.ts';

/** What was done to a settings file, kept in our home until it is undone. */
const Edit = z.looseObject({
  file: z.string(),
  backup: z.string().nullable(),
  hadEnv: z.boolean(),
  mode: z.int(),
  /**
   * Each variable we set, with our value and the user's former one; `past` are values of ours of before, which the
   * file still holds where an edit was cut short.
   */
  values: z.array(
    z.object({
      name: z.string(),
      ours: z.string(),
      former: z.unknown().optional(),
      past: z.array(z.string()).optional(),
    }),
  ),
});
export type Edit = z.infer<typeof Edit>;

const OWNER_ONLY = 0o600;

export interface SettingsPlan {
  /** Where the bytes really are: a link is followed. */
  readonly file: string;
  readonly before: string | null;
  readonly after: string;
  readonly changes: readonly SettingsChange[];
}

export interface SettingsChange {
  readonly name: string;
  readonly from: unknown;
  readonly to: string;
}

/**
 * What `editSettings` would do to Claude Code's settings file; touches nothing.
 *
 * @param env  variables to set under the file's `env`
 * @throws CometError `config_invalid` when the file is not plain JSON of the expected shape; it stays as it is
 */
export async function planSettings(file: string, env: Readonly<Record<string, string>>): Promise<SettingsPlan> {
  const target = await realpath(file).catch(() => path.resolve(file));
  const before = await readFileIfPresent(target);
  if (before !== null) refuseComments(before, target);
  const { envOf, withEnv } = await import('./ca-settings-text.ts');
  const formerEnv = before === null ? {} : (envOf(before, target) ?? {});
  const changes = Object.entries(env).map(([name, to]) => ({ name, from: formerEnv[name], to }));
  const after = before === null ? `${withEnv('{}', env, target)}\n` : withEnv(before, env, target);
  return { file: target, before, after, changes };
}

/**
 * Carries out a plan that the user agreed to. The former file is kept beside it, 0600; a second edit, after the
 * user's own changes, keeps the first one's.
 *
 * @throws CometError `config_invalid` when the file changed since it was planned, or another one is edited
 */
export async function editSettings(paths: HomePaths, plan: SettingsPlan): Promise<{ readonly backup: string | null }> {
  const earlier = await readEdit(paths);
  if (earlier !== null && earlier.file !== plan.file) {
    throw new CometError(
      'config_invalid',
      `${earlier.file} is edited already; undo that first (comet-cc uninstall-ca)`,
    );
  }
  if ((await readFileIfPresent(plan.file)) !== plan.before) {
    throw new CometError('config_invalid', `${plan.file} changed in the meantime; it was left alone, try again`);
  }
  const edit = earlier === null ? await firstEdit(plan) : await secondEdit(earlier, plan);
  await ensureDir(paths.home);
  await writeFileAtomic(editFile(paths), `${JSON.stringify(edit, null, 2)}\n`);
  if (plan.before === null) await makeFolder(paths, path.dirname(plan.file), 0o700);
  // The proxy's token is in there now: nobody else may read it.
  await writeFileAtomic(plan.file, plan.after, { mode: edit.mode & OWNER_ONLY });
  return { backup: edit.backup };
}

/**
 * What became of the edit since: which variables the file no longer holds as `wanted`.
 *
 * @returns null when no file is edited
 * @throws CometError `config_invalid` when the file no longer parses
 */
export async function inspectEdit(
  paths: HomePaths,
  wanted: Readonly<Record<string, string>>,
): Promise<{ readonly file: string; readonly astray: readonly string[] } | null> {
  const edit = await readEdit(paths);
  if (edit === null) return null;
  const now = await readFileIfPresent(edit.file);
  if (now !== null) refuseComments(now, edit.file);
  const { envOf } = await import('./ca-settings-text.ts');
  const env = (now === null ? null : envOf(now, edit.file)) ?? {};
  return {
    file: edit.file,
    astray: edit.values.filter(({ name, ours }) => env[name] !== (wanted[name] ?? ours)).map(({ name }) => name),
  };
}

/** The settings file that holds something of ours; null when none does. @throws CometError `config_invalid` */
export async function editedSettings(paths: HomePaths): Promise<string | null> {
  return (await readEdit(paths))?.file ?? null;
}

async function firstEdit(plan: SettingsPlan): Promise<Edit> {
  const { envOf } = await import('./ca-settings-text.ts');
  const backup = plan.before === null ? null : await backUp(plan.file, plan.before);
  return {
    file: plan.file,
    backup,
    hadEnv: plan.before !== null && envOf(plan.before, plan.file) !== null,
    mode: plan.before === null ? OWNER_ONLY : await modeOf(plan.file),
    values: plan.changes.map(({ name, from, to }) => ({ name, ours: to, former: from })),
  };
}

/** What is put back at the end is what the user had last: before us, or in place of ours since. */
async function secondEdit(earlier: Edit, plan: SettingsPlan): Promise<Edit> {
  const { isOurs } = await import('./ca-settings-text.ts');
  const again = plan.changes.map(({ name, from, to }) => {
    const known = earlier.values.find((value) => value.name === name);
    if (known === undefined || !isOurs(known, from)) return { name, ours: to, former: from };
    const past = [...new Set([...(known.past ?? []), known.ours])].filter((value) => value !== to);
    return { name, ours: to, former: known.former, past };
  });
  const others = earlier.values.filter(({ name }) => !again.some((value) => value.name === name));
  return { ...earlier, values: [...others, ...again] };
}

/**
 * Undoes `editSettings`: byte for byte where nobody else changed the file since, whatever else of ours came or went
 * meanwhile; a variable that the user has set to something else is left alone.
 *
 * @returns the file that was reverted, null when none was edited
 * @throws CometError `config_invalid` when the file no longer parses; it stays as it is
 */
export async function revertSettings(paths: HomePaths): Promise<string | null> {
  const edit = await readEdit(paths);
  if (edit === null) return null;
  const { undoEdit } = await import('../reversible-edit.ts');
  const { withoutEnv } = await import('./ca-settings-text.ts');
  await undoEdit({ ...edit, paths, without: (text, original) => withoutEnv(text, edit, original) });
  await rm(editFile(paths));
  return edit.file;
}

/** Claude Code takes nothing from settings with comments: what is written there would not be used. */
function refuseComments(text: string, file: string): void {
  try {
    JSON.parse(text);
  } catch (error) {
    throw new CometError(
      'config_invalid',
      `${file} is not plain JSON, so Claude Code reads nothing of it; it was left alone`,
      { cause: error },
    );
  }
}

async function readEdit(paths: HomePaths): Promise<Edit | null> {
  const text = await readFileIfPresent(editFile(paths));
  if (text === null) return null;
  try {
    return Edit.parse(JSON.parse(text));
  } catch (error) {
    throw new CometError('config_invalid', `${editFile(paths)} is damaged; undo the edit by hand`, { cause: error });
  }
}

async function modeOf(file: string): Promise<number> {
  return (await stat(file)).mode & 0o777;
}

const editFile = (paths: HomePaths): string => path.join(paths.home, 'settings-edit.json');
