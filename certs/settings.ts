import { createHash } from 'node:crypto';
import { mkdir, realpath, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { CometError } from '../common/errors.ts';
import { backUp, ensureDir, readFileIfPresent, removeEmpty, writeFileAtomic } from '../common/files.ts';
import type { HomePaths } from '../common/paths.ts';
import type { Edit } from './schemas.ts';

type Settings = Record<string, unknown>;

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
  const settings = before === null ? {} : await parseSettings(before, target);
  const formerEnv = envOf(settings) ?? {};
  const changes = Object.entries(env).map(([name, to]) => ({ name, from: formerEnv[name], to }));
  const after = render({ ...settings, env: { ...formerEnv, ...env } }, before);
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
  const edit = earlier === null ? await firstEdit(plan) : secondEdit(earlier, plan);
  await ensureDir(paths.home);
  await writeFileAtomic(editFile(paths), `${JSON.stringify(edit, null, 2)}\n`);
  if (plan.before === null) await mkdir(path.dirname(plan.file), { recursive: true, mode: 0o700 });
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
  const env = (now === null ? null : envOf(await parseSettings(now, edit.file))) ?? {};
  return {
    file: edit.file,
    astray: edit.values.filter(({ name, ours }) => env[name] !== (wanted[name] ?? ours)).map(({ name }) => name),
  };
}

/** The settings file that holds something of ours; null when none does. @throws CometError `config_invalid` */
export async function editedSettings(paths: HomePaths): Promise<string | null> {
  return (await readEdit(paths))?.file ?? null;
}

/** Whether nobody has changed the file since: undoing the edit then gives back the very bytes it had. */
export async function isEditLatest(paths: HomePaths): Promise<boolean> {
  const edit = await readEdit(paths);
  const now = edit === null ? null : await readFileIfPresent(edit.file);
  return now !== null && sha256(now) === edit?.sha256;
}

async function firstEdit(plan: SettingsPlan): Promise<Edit> {
  const backup = plan.before === null ? null : await backUp(plan.file, plan.before);
  return {
    file: plan.file,
    backup,
    sha256: sha256(plan.after),
    hadEnv: plan.before !== null && envOf(await parseSettings(plan.before, plan.file)) !== null,
    mode: plan.before === null ? OWNER_ONLY : await modeOf(plan.file),
    values: plan.changes.map(({ name, from, to }) => ({ name, ours: to, former: from })),
  };
}

/** What is put back at the end is what the user had last: before us, or in place of ours since. */
function secondEdit(earlier: Edit, plan: SettingsPlan): Edit {
  const isUntouched = plan.before !== null && sha256(plan.before) === earlier.sha256;
  const again = plan.changes.map(({ name, from, to }) => {
    const known = earlier.values.find((value) => value.name === name);
    if (known === undefined || !isOurs(known, from)) return { name, ours: to, former: from };
    const past = [...new Set([...(known.past ?? []), known.ours])].filter((value) => value !== to);
    return { name, ours: to, former: known.former, past };
  });
  const others = earlier.values.filter(({ name }) => !again.some((value) => value.name === name));
  // A file that the user changed must not be replaced by the first backup.
  return { ...earlier, sha256: isUntouched ? sha256(plan.after) : '', values: [...others, ...again] };
}

/**
 * Undoes `editSettings`: byte for byte when nobody changed the file since, else variable by variable, leaving
 * those alone that the user has set to something else.
 *
 * @returns the file that was reverted, null when none was edited
 * @throws CometError `config_invalid` when the file no longer parses; it stays as it is
 */
export async function revertSettings(paths: HomePaths): Promise<string | null> {
  const edit = await readEdit(paths);
  if (edit === null) return null;
  const now = await readFileIfPresent(edit.file);
  const original = edit.backup === null ? null : await readFileIfPresent(edit.backup);
  const isUntouched = now !== null && sha256(now) === edit.sha256;
  if (isUntouched && edit.backup === null) {
    await rm(edit.file);
    await removeEmpty(path.dirname(edit.file));
  } else if (isUntouched && original !== null) await writeFileAtomic(edit.file, original, edit);
  else if (now !== null && now !== original) {
    await writeFileAtomic(edit.file, render(withoutOurs(await parseSettings(now, edit.file), edit), now), edit);
  }
  if (edit.backup !== null) await rm(edit.backup, { force: true });
  await rm(editFile(paths));
  return edit.file;
}

function isOurs({ ours, past = [] }: Edit['values'][number], value: unknown): boolean {
  return value === ours || past.some((one) => one === value);
}

function withoutOurs(settings: Settings, edit: Edit): Settings {
  const env = { ...envOf(settings) };
  for (const value of edit.values) {
    const { name, former } = value;
    if (!isOurs(value, env[name])) continue;
    if (former === undefined) delete env[name];
    else env[name] = former;
  }
  const { env: _, ...others } = settings;
  return Object.keys(env).length === 0 && !edit.hadEnv ? others : { ...settings, env };
}

async function parseSettings(text: string, file: string): Promise<Settings> {
  const { Settings } = await import('./schemas.ts');
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new CometError('config_invalid', `${file} is not plain JSON; it was left alone`, { cause: error });
  }
  const result = Settings.safeParse(parsed);
  if (result.success) return parsed as Settings;
  throw new CometError('config_invalid', `${file}: an object was expected, as was its "env"; it was left alone`, {
    cause: result.error,
  });
}

function envOf(settings: Settings): Record<string, unknown> | null {
  return (settings['env'] as Record<string, unknown> | undefined) ?? null;
}

function render(settings: Settings, like: string | null): string {
  const indent = like === null ? '  ' : (/^[ \t]+(?=")/m.exec(like)?.[0] ?? (like.includes('\n') ? '  ' : ''));
  const newline = like?.includes('\r\n') ? '\r\n' : '\n';
  const text = JSON.stringify(settings, null, indent).replaceAll('\n', newline);
  return like === null || /\n$/.test(like) ? text + newline : text;
}

async function readEdit(paths: HomePaths): Promise<Edit | null> {
  const text = await readFileIfPresent(editFile(paths));
  if (text === null) return null;
  const schemas = await import('./schemas.ts');
  try {
    return schemas.Edit.parse(JSON.parse(text));
  } catch (error) {
    throw new CometError('config_invalid', `${editFile(paths)} is damaged; undo the edit by hand`, { cause: error });
  }
}

async function modeOf(file: string): Promise<number> {
  return (await stat(file)).mode & 0o777;
}

const editFile = (paths: HomePaths): string => path.join(paths.home, 'settings-edit.json');
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
