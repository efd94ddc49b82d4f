import { stat } from 'node:fs/promises';
import { readFileIfPresent, writeFileAtomic } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { applyEdit, findEdits, planEdit, resolveFile, undoEdit } from '../edit-file.ts';
import { HOOKS, type HookCommands, type HookEvent, ownHooks, removeHooks } from './entries.ts';

export interface HookState {
  readonly file: string;
  /** False where it has comments or the like: Claude Code then ignores it. */
  readonly plain: boolean;
  /** `other`: of another folder or Node than the commands that were asked for. */
  readonly events: Readonly<Record<HookEvent, 'installed' | 'other' | 'missing'>>;
}

/**
 * Adds the hooks to a settings file of Claude Code, with a copy of the file beside it.
 *
 * @returns `backup` null where nothing had to be changed, or there was no file
 * @throws CometError `config_invalid` when the file is not a settings file; it stays as it is
 */
export async function installHooks(
  paths: HomePaths,
  settings: string,
  commands: HookCommands,
): Promise<Pick<HookState, 'file' | 'plain'> & { readonly changed: boolean; readonly backup: string | null }> {
  const plan = await planEdit('hooks', settings, commands);
  const { changed, backup } = await applyEdit(paths, plan);
  return { file: plan.file, plain: isPlain(plan.after), changed, backup };
}

/**
 * Removes the hooks from every file that is recorded, and from `settings`.
 *
 * @returns the files that were changed
 * @throws as `installHooks`
 */
export async function uninstallHooks(paths: HomePaths, settings: readonly string[]): Promise<readonly string[]> {
  const recorded = (await findEdits(paths, 'hooks')).map(({ file }) => file);
  const changed: string[] = [];
  for (const file of recorded) if (await undoEdit(paths, 'hooks', file)) changed.push(file);
  for (const file of await Promise.all(settings.map(resolveFile))) {
    const text = await readFileIfPresent(file);
    const rest = text === null ? null : removeHooks(text, file);
    if (rest === null || rest === text) continue;
    await writeFileAtomic(file, rest, { mode: (await stat(file)).mode & 0o777 });
    changed.push(file);
  }
  return changed;
}

/** The settings files that have hooks of comet-cc or are recorded to have some. @throws as `installHooks` */
export async function findHookedFiles(paths: HomePaths, settings: readonly string[]): Promise<readonly string[]> {
  const recorded = (await findEdits(paths, 'hooks')).map(({ file }) => file);
  const texts = await Promise.all(settings.map((file) => readFileIfPresent(file)));
  const found = settings.filter((file, at) => Object.keys(ownHooks(texts[at] ?? '{}', file)).length > 0);
  return [...new Set([...recorded, ...found])];
}

/** @throws as `installHooks` */
export async function inspectHooks(settings: string, commands: HookCommands): Promise<HookState> {
  const text = await readFileIfPresent(settings);
  const own = text === null ? {} : ownHooks(text, settings);
  const stateOf = (event: HookEvent): HookState['events'][HookEvent] => {
    const found = own[event] ?? [];
    if (found.includes(commands[event])) return 'installed';
    return found.length === 0 ? 'missing' : 'other';
  };
  const events = Object.keys(HOOKS).map((event) => [event, stateOf(event as HookEvent)]);
  return {
    file: settings,
    plain: text === null || isPlain(text),
    events: Object.fromEntries(events) as HookState['events'],
  };
}

function isPlain(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
