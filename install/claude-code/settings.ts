import { CometError } from '../../common/errors.ts';
import { readFileIfPresent } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { applyEdit, type EditPlan, findEdits, planEdit, undoEdit } from '../edit-file.ts';
import type { Values } from '../edit-kind.ts';
import { valueAt } from '../json-text.ts';

export interface SettingsPlan extends EditPlan {
  readonly changes: readonly { readonly name: string; readonly from: unknown; readonly to: string }[];
}

/**
 * What `editSettings` would change in Claude Code's settings file; changes nothing.
 *
 * @param values  variables to set under the file's `env`
 * @throws CometError `config_invalid` when the file is not plain JSON of the expected shape; it stays as it is
 */
export async function planSettings(file: string, values: Values): Promise<SettingsPlan> {
  const plan = await planEdit('env', file, values);
  if (plan.before !== null) rejectComments(plan.before, plan.file);
  const changes = Object.entries(values).map(([name, to]) => ({
    name,
    from: valueAt(plan.before ?? '', ['env', name]),
    to,
  }));
  return { ...plan, changes };
}

/**
 * Carries out a plan that the user agreed to. A copy of the file is kept beside it.
 *
 * @throws CometError `config_invalid` when the file changed since it was planned, or another one is edited
 */
export async function editSettings(paths: HomePaths, plan: SettingsPlan): Promise<{ readonly backup: string | null }> {
  const earlier = await findEditedSettings(paths);
  if (earlier !== null && earlier !== plan.file) {
    throw new CometError('config_invalid', `${earlier} is edited already; undo that first: comet-cc uninstall-ca`);
  }
  return applyEdit(paths, plan);
}

/**
 * Which of the variables that were set the file no longer holds as `wanted`.
 *
 * @returns null when no file is edited
 * @throws CometError `config_invalid` when the file no longer parses
 */
export async function inspectSettings(
  paths: HomePaths,
  wanted: Values,
): Promise<{ readonly file: string; readonly astray: readonly string[] } | null> {
  const [edit] = await findEdits(paths, 'env');
  if (edit === undefined) return null;
  const { file, values } = edit;
  const text = await readFileIfPresent(file);
  if (text !== null) rejectComments(text, file);
  const isAstray = (name: string): boolean => valueAt(text ?? '', ['env', name]) !== (wanted[name] ?? values[name]);
  return { file, astray: Object.keys(values).filter(isAstray) };
}

/** The settings file with variables of comet-cc; null when there is none. @throws CometError `config_invalid` */
export async function findEditedSettings(paths: HomePaths): Promise<string | null> {
  const [edit] = await findEdits(paths, 'env');
  return edit?.file ?? null;
}

/**
 * Undoes `editSettings`. A variable that the user has set to another value stays.
 *
 * @returns the file, null when none was edited
 * @throws CometError `config_invalid` when the file no longer parses; it stays as it is
 */
export async function revertSettings(paths: HomePaths): Promise<string | null> {
  const file = await findEditedSettings(paths);
  if (file !== null) await undoEdit(paths, 'env', file);
  return file;
}

/** Claude Code ignores settings with comments, so what is written there would have no effect. */
function rejectComments(text: string, file: string): void {
  try {
    JSON.parse(text);
  } catch (error) {
    const effect = 'Claude Code ignores it; it was left unchanged';
    throw new CometError('config_invalid', `${file} is not plain JSON, so ${effect}`, { cause: error });
  }
}
