import { stat } from 'node:fs/promises';
import { CometError, getReason, type Problem } from '../../common/errors.ts';
import { readFileIfPresent, readUtf8, writeFileAtomic } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { parseJson } from '../../common/text.ts';
import { applyEdit, type EditName, editKind, findEdits, planEdit, resolveFile, undoEdit } from '../edit-file.ts';
import { getValueAt, type OwnValues, type Values } from '../json-text.ts';
import { readMarkedBlock, replaceMarkedBlock } from '../marked-block.ts';
import { HOOKS, type HookCommands, type HookEvent, ownHooks } from './entries.ts';

export { removeCreatedDirs } from '../edit-file.ts';
export { hookCommands } from './entries.ts';
export { findRegistrations, findTrackedServers, removeRegistrations } from './registrations.ts';

type SettingsPlan = Awaited<ReturnType<typeof planSettings>>;

/**
 * What `editSettings` would change in Claude Code's settings file; changes nothing.
 * @param values  variables to set under the file's `env`
 * @throws CometError `config_invalid` when the file is not plain JSON of the expected shape; it stays as it is
 */
export async function planSettings(file: string, values: Values) {
  const plan = await planEdit('env', file, values);
  if (plan.before !== null) rejectComments(plan.before, plan.file);
  const before = plan.before ?? '';
  const changes = Object.entries(values).map(([name, to]) => ({ name, from: getValueAt(before, ['env', name]), to }));
  return { ...plan, changes };
}

/**
 * Carries out a plan that the user agreed to. A copy of the file is kept beside it.
 * @throws CometError `config_invalid` when the file changed since it was planned, or another one is edited
 */
export async function editSettings(paths: HomePaths, plan: SettingsPlan): Promise<{ readonly backup: string | null }> {
  const earlier = (await findEdits(paths, 'env'))[0]?.file ?? plan.file;
  if (earlier !== plan.file)
    throw new CometError('config_invalid', `${earlier} is edited already; undo that first: comet-cc uninstall-ca`);
  return applyEdit(paths, plan);
}

/**
 * Which of the variables that were set the file no longer holds as `wanted`.
 * @returns null when no file is edited
 * @throws CometError `config_invalid` when the file no longer parses
 */
export async function inspectSettings(paths: HomePaths, wanted: Values) {
  const [edit] = await findEdits(paths, 'env');
  if (edit === undefined) return null;
  const { file, values } = edit;
  const text = await readFileIfPresent(file);
  if (text !== null) rejectComments(text, file);
  const isAstray = (name: string): boolean => getValueAt(text ?? '', ['env', name]) !== (wanted[name] ?? values[name]);
  return { file, astray: Object.keys(values).filter(isAstray) };
}

function rejectComments(text: string, file: string): void {
  if (isPlain(text)) return;
  const effect = 'Claude Code ignores it; it was left unchanged';
  throw new CometError('config_invalid', `${file} is not plain JSON, so ${effect}`);
}

/**
 * Adds entries to a settings file of Claude Code or an editor, with a copy of the file beside it.
 * @returns `backup` null where nothing had to be changed, or there was no file
 * @throws CometError `config_invalid` when the file is not a settings file, or holds what may not be replaced
 */
export async function installEntries(paths: HomePaths, name: EditName, settings: string, values: Values) {
  const plan = await planEdit(name, settings, values);
  const { changed, backup } = await applyEdit(paths, plan);
  return { file: plan.file, plain: isPlain(plan.after), changed, backup };
}

/**
 * Removes the entries from every file that is recorded, and from `files`. A variable that the user has set to another
 * value stays.
 * @param own  variables, which are not recognized by themselves
 * @returns the files that were changed
 * @throws CometError `config_invalid` when a file no longer parses; it stays as it is
 */
export async function uninstallEntries(paths: HomePaths, name: EditName, files: string[], own: OwnValues = {}) {
  const recorded = await findEdits(paths, name);
  // A dotfile manager may have put the file elsewhere.
  const before = (name === 'env' && recorded[0]?.before) || '';
  const changed: string[] = [];
  const targets = await Promise.all(files.map(resolveFile));
  for (const { file } of recorded) if (await undoEdit(paths, name, file, targets)) changed.push(file);
  for (const file of targets) {
    const text = await readFileIfPresent(file);
    const rest = text === null ? null : editKind(name).remove(text, own, before, file);
    if (rest === null || rest === text || (await readUtf8(file)) !== text) continue;
    await writeFileAtomic(file, rest, { mode: (await stat(file)).mode & 0o777 });
    changed.push(file);
  }
  return changed;
}

/** The settings files that have such entries or are recorded to have some. @throws as `installEntries` */
export async function findEntries(paths: HomePaths, name: EditName, settings: readonly string[], own: OwnValues = {}) {
  const recorded = (await findEdits(paths, name)).map(({ file }) => file);
  const targets = await Promise.all(settings.map(resolveFile));
  const texts = await Promise.all(targets.map((file) => readFileIfPresent(file)));
  const holds = (text: string, file: string): boolean => editKind(name).remove(text, own, '', file) !== text;
  return [...new Set([...recorded, ...targets.filter((file, at) => holds(texts[at] ?? '', file))])];
}

/** What the parts of the library in the user's memory files say. @throws as `installEntries` */
export async function readLinkedBlock(paths: HomePaths): Promise<string> {
  const files = await findEdits(paths, 'library');
  const texts = await Promise.all(
    files.map(async ({ file }) => readMarkedBlock((await readFileIfPresent(file)) ?? '', file)),
  );
  return texts.join('');
}

/**
 * Writes the part of the library again where the user has linked it, and nowhere else.
 * @returns the files in which it is out of date, and why
 * @throws CometError `config_invalid` where the record is damaged
 */
export async function refreshLinkedBlock(paths: HomePaths, block: () => Promise<string>): Promise<readonly Problem[]> {
  const files = await findEdits(paths, 'library');
  const text = files.length === 0 ? '' : await block();
  const problems: Problem[] = [];
  for (const { file } of files) {
    await replaceBlock(file, text).catch((error: unknown) => {
      problems.push({ file, message: `the library's part is out of date: ${getReason(error)}` });
    });
  }
  return problems;
}

async function replaceBlock(file: string, block: string): Promise<void> {
  const before = await readUtf8(file);
  const after = before === null ? null : replaceMarkedBlock(before, block, file);
  if (after === null || after === before) return;
  const { mode } = await stat(file);
  // An atomic write replaces a read-only file, too.
  if ((mode & 0o222) === 0) throw new Error('the file is read-only');
  await writeFileAtomic(file, after, { mode: mode & 0o777 });
}

/**
 * The state of each hook; `other`: of another folder or Node than the commands that were asked for.
 * @throws as `installEntries`
 */
export async function inspectHooks(settings: string, commands: HookCommands) {
  const text = await readFileIfPresent(settings);
  const own = text === null ? {} : ownHooks(text, settings);
  const getState = (event: HookEvent): 'installed' | 'other' | 'missing' => {
    const eventCommands = own[event] ?? [];
    if (eventCommands.includes(commands[event])) return 'installed';
    return eventCommands.length === 0 ? 'missing' : 'other';
  };
  const events = Object.fromEntries(Object.keys(HOOKS).map((event) => [event, getState(event as HookEvent)]));
  const hasStatusLine = text !== null && getValueAt(text, ['statusLine']) !== undefined;
  return { file: settings, plain: text === null || isPlain(text), events, hasStatusLine };
}

/** Claude Code ignores settings with comments or the like, so what is written there would have no effect. */
const isPlain = (text: string): boolean => text.trim() === '' || parseJson(text) !== undefined;
