import { realpath, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { CometError } from '../../common/errors.ts';
import { readFileIfPresent, writeFileAtomic } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { makeFolder, removeMadeFolder } from '../created-dirs.ts';
import { EDITORS, type EditorName } from './editors.ts';
import { astrayVariables, withoutVariables, withVariables } from './settings-text.ts';

type Paths = Pick<HomePaths, 'home' | 'editorsFile' | 'foldersFile'>;
type Variables = Readonly<Record<string, string>>;

const Edit = z.object({
  file: z.string(),
  /** Null where there was no file. */
  before: z.string().nullable(),
  after: z.string(),
  mode: z.int(),
  variables: z.record(z.string(), z.string()),
});
type Edit = z.infer<typeof Edit>;
const Edits = z.partialRecord(z.enum(EDITORS as [EditorName, ...EditorName[]]), Edit);

const OWNER_ONLY = 0o600;

/** Where the bytes really are: a link is followed. */
export async function settingsAt(file: string): Promise<{ readonly file: string; readonly text: string | null }> {
  const target = await realpath(file).catch(() => path.resolve(file));
  return { file: target, text: await readFileIfPresent(target) };
}

/**
 * Sets the variables in an editor's settings. The former settings are kept in our home.
 *
 * @returns false where all of it stood there already
 * @throws CometError `config_invalid`; then nothing is changed
 */
export async function setUpEditor(
  paths: Paths,
  editor: EditorName,
  file: string,
  variables: Variables,
): Promise<boolean> {
  const edits = await readEdits(paths);
  const { file: target, text } = await settingsAt(file);
  const known = edits[editor];
  const before = known === undefined || known.file !== target ? text : formerText(known, text);
  const after = withVariables(before ?? '', variables);
  if (after === text) return false;
  const mode = known?.mode ?? (text === null ? OWNER_ONLY : (await stat(target)).mode & 0o777);
  const edit: Edit = { file: target, before, after, mode, variables };
  await makeFolder(paths, path.dirname(target));
  await writeEdits(paths, { ...edits, [editor]: edit });
  // The proxy's token is in there now: nobody else may read it.
  await writeFileAtomic(target, after, { mode: mode & OWNER_ONLY });
  return true;
}

/** @returns the file that is as it was; null where nothing of ours was in one */
export async function revertEditor(paths: Paths, editor: EditorName): Promise<string | null> {
  const edits = await readEdits(paths);
  const { [editor]: edit, ...rest } = edits;
  if (edit === undefined) return null;
  const text = await readFileIfPresent(edit.file);
  if (text !== null) {
    const former = formerText(edit, text);
    if (former !== null) await writeFileAtomic(edit.file, former, { mode: edit.mode });
    else {
      await rm(edit.file);
      await removeMadeFolder(paths, path.dirname(edit.file));
    }
  }
  if (Object.keys(rest).length === 0) await rm(paths.editorsFile, { force: true });
  else await writeEdits(paths, rest);
  return edit.file;
}

export interface EditorState {
  readonly editor: EditorName;
  readonly file: string;
  /** Variables that are not there any more as we set them. */
  readonly astray: readonly string[];
}

/** Every editor that was set up; `wanted` null: as it was then. @throws CometError `config_invalid` */
export async function editorStates(paths: Paths, wanted: Variables | null): Promise<EditorState[]> {
  const edits = await readEdits(paths);
  return await Promise.all(
    EDITORS.flatMap((editor) => {
      const edit = edits[editor];
      return edit === undefined ? [] : [stateOf(editor, edit, wanted)];
    }),
  );
}

async function stateOf(editor: EditorName, edit: Edit, wanted: Variables | null): Promise<EditorState> {
  const text = (await readFileIfPresent(edit.file)) ?? '';
  return { editor, file: edit.file, astray: astrayVariables(text, wanted ?? edit.variables) };
}

/** The very bytes where nobody changed them since, else what was changed, without what is ours. */
function formerText({ before, after, variables }: Edit, text: string | null): string | null {
  if (text === null || text === after) return before;
  return withoutVariables(text, variables, before ?? '');
}

async function readEdits({ editorsFile }: Paths): Promise<z.infer<typeof Edits>> {
  const text = await readFileIfPresent(editorsFile);
  if (text === null) return {};
  try {
    return Edits.parse(JSON.parse(text));
  } catch (error) {
    throw new CometError('config_invalid', `${editorsFile} is damaged; it says what was changed in editors`, {
      cause: error,
    });
  }
}

async function writeEdits({ editorsFile }: Paths, edits: z.infer<typeof Edits>): Promise<void> {
  await writeFileAtomic(editorsFile, `${JSON.stringify(edits, null, 2)}\n`);
}
