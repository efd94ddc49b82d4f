import { realpath, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { CometError } from '../../common/errors.ts';
import { backUp, ensureDir, readFileIfPresent, writeFileAtomic } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { makeFolder } from '../created-dirs.ts';
import { undoEdit } from '../reversible-edit.ts';
import { HOOKS, type HookCommands, type HookEvent, ownHooks, withHooks, withoutHooks } from './hook-entries.ts';

const Edited = z.looseObject({
  file: z.string(),
  /** Null where there was no file. */
  backup: z.string().nullable(),
});
type Edited = z.infer<typeof Edited>;

const OWNER_ONLY = 0o600;

export interface HookState {
  readonly file: string;
  /** False where it has comments or the like: Claude Code then takes nothing from it. */
  readonly plain: boolean;
  /** `other`: of another folder or Node than the one that is asked. */
  readonly events: Readonly<Record<HookEvent, 'installed' | 'other' | 'missing'>>;
}

/**
 * Adds our hooks to a settings file of Claude Code; the former one is kept beside it.
 *
 * @returns the backup; null where nothing had to be changed, or no file was there
 * @throws CometError `config_invalid` when the file is not what it should be; it stays as it is
 */
export async function installHooks(
  paths: HomePaths,
  settings: string,
  commands: HookCommands,
): Promise<{
  readonly file: string;
  readonly plain: boolean;
  readonly changed: boolean;
  readonly backup: string | null;
}> {
  const file = await realpath(settings).catch(() => path.resolve(settings));
  const before = await readFileIfPresent(file);
  const after = before === null ? `${withHooks('{}', commands, file)}\n` : withHooks(before, commands, file);
  const plain = isPlain(after);
  if (after === before) return { file, plain, changed: false, backup: null };
  const edits = await readEdits(paths);
  const earlier = edits.find((edit) => edit.file === file);
  // The user's own changes since the first edit must not be replaced by what was before them.
  const edit = earlier ?? { file, backup: before === null ? null : await backUp(file, before) };
  await ensureDir(paths.home);
  await writeEdits(paths, [...edits.filter((each) => each.file !== file), edit]);
  if (before === null) await makeFolder(paths, path.dirname(file), 0o700);
  await writeFileAtomic(file, after, { mode: before === null ? OWNER_ONLY : await modeOf(file) });
  return { file, plain, changed: true, backup: edit.backup };
}

/**
 * Takes our hooks out of every file that they were put into, and of `settings`: byte for byte as it was where nobody
 * changed it since, else our entries alone.
 *
 * @returns the files that were changed
 * @throws as `installHooks`
 */
export async function uninstallHooks(paths: HomePaths, settings: readonly string[]): Promise<readonly string[]> {
  const edits = await readEdits(paths);
  const named = await Promise.all(settings.map((file) => realpath(file).catch(() => path.resolve(file))));
  const changed: string[] = [];
  for (const file of new Set([...edits.map((edit) => edit.file), ...named])) {
    const edit = edits.find((each) => each.file === file);
    const without = (text: string, original: string | null): string => withoutHooks(text, file, original);
    if (await undoEdit({ paths, file, backup: edit?.backup, without })) changed.push(file);
    if (edit === undefined) continue;
    edits.splice(edits.indexOf(edit), 1);
    await writeEdits(paths, edits);
  }
  return changed;
}

/** The settings files with hooks of ours, or with a note that they have some. @throws as `installHooks` */
export async function hookedFiles(paths: HomePaths, settings: readonly string[]): Promise<readonly string[]> {
  const noted = (await readEdits(paths)).map(({ file }) => file);
  const texts = await Promise.all(settings.map((file) => readFileIfPresent(file)));
  const found = settings.filter((file, at) => Object.keys(ownHooks(texts[at] ?? '{}', file)).length > 0);
  return [...new Set([...noted, ...found])];
}

/** @throws as `installHooks` */
export async function hookState(settings: string, commands: HookCommands): Promise<HookState> {
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

async function readEdits(paths: HomePaths): Promise<Edited[]> {
  const text = await readFileIfPresent(editsFile(paths));
  if (text === null) return [];
  try {
    return z.array(Edited).parse(JSON.parse(text));
  } catch (error) {
    throw new CometError('config_invalid', `${editsFile(paths)} is damaged; remove it, and our hooks by hand`, {
      cause: error,
    });
  }
}

async function writeEdits(paths: HomePaths, edits: readonly Edited[]): Promise<void> {
  if (edits.length === 0) await rm(editsFile(paths), { force: true });
  else await writeFileAtomic(editsFile(paths), `${JSON.stringify(edits, null, 2)}\n`);
}

async function modeOf(file: string): Promise<number> {
  return (await stat(file)).mode & 0o777;
}

const editsFile = (paths: HomePaths): string => path.join(paths.home, 'hooks-edit.json');
