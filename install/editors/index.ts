import { readFileIfPresent } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { findEdits } from '../edit-file.ts';
import type { Values } from '../json-text.ts';
import { EDITORS, type EditorName } from './editors.ts';
import { setVariables } from './entries.ts';

export { setVariables, VARIABLES_KEY } from './entries.ts';

/**
 * Every editor that was set up, and the variables that are no longer as they were set; `wanted` null compares with what
 * was set then.
 * @throws CometError `config_invalid`
 */
export async function inspectEditors(paths: HomePaths, wanted: Values | null) {
  const states: { readonly editor: EditorName; readonly file: string; readonly astray: readonly string[] }[] = [];
  for (const editor of EDITORS) {
    for (const { file, values } of await findEdits(paths, editor)) {
      const set = setVariables((await readFileIfPresent(file)) ?? '');
      const expected = wanted ?? values;
      states.push({ editor, file, astray: Object.keys(expected).filter((name) => set[name] !== expected[name]) });
    }
  }
  return states;
}
