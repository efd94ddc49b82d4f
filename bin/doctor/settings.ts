import { listTrustedStores } from '../../certs/index.ts';
import { getReason } from '../../common/errors.ts';
import { readFileIfPresent } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { parseJson } from '../../common/text.ts';
import { inspectSettings } from '../../install/claude-code/index.ts';
import { inspectEditors, setVariables, VARIABLES_KEY } from '../../install/editors/index.ts';
import {
  EDITORS,
  editorSettingsFile,
  findClashes,
  findOtherApi,
  managedProblem,
  settingsEnv,
  userSettingsFile,
} from '../../install/index.ts';
import { bad, type Check, good } from './index.ts';

const SET = 'comet-cc install-ca --settings';
const CORRECT = 'correct the file; Claude Code reads plain JSON';

/**
 * Whether Claude Code's settings still hold what `install-ca --settings` wrote, and no editor sets something else.
 * @param wanted  what Claude Code needs now; null where no token is made yet
 */
export async function checkSettings(
  paths: HomePaths,
  env: NodeJS.ProcessEnv,
  wanted: Readonly<Record<string, string>> | null,
): Promise<Check> {
  const file = userSettingsFile(env);
  try {
    const rule = await managedProblem(wanted ?? {}, (await listTrustedStores(paths)).length > 0);
    if (rule !== '') return bad('settings', rule, 'until then comet-cc run starts Claude Code without memory');
    const edit = await inspectSettings(paths, wanted ?? {});
    if (edit !== null && wanted === null) {
      return bad('settings', `${edit.file} points to comet-cc, but its token is gone`, SET);
    }
    if (edit !== null && edit.astray.length > 0) {
      const detail = `${edit.file} was changed, or the port was: ${edit.astray.join(', ')}`;
      return bad('settings', detail, 'comet-cc install-ca --settings; to leave it so, comet-cc uninstall-ca');
    }
    if (edit !== null) return good('settings', `${edit.file} points to comet-cc`);
    const text = (await readFileIfPresent(file)) ?? '';
    if (text.trim() !== '' && parseJson(text) === undefined)
      return bad('settings', `${file} is not plain JSON, so Claude Code ignores it`, CORRECT);
  } catch (error) {
    return bad('settings', getReason(error), CORRECT);
  }
  const other = await findOtherApi(env);
  if (other !== undefined) return bad('settings', other, 'unset it, and name a gateway in COMET_CC_UPSTREAM instead');
  const set = await settingsEnv(file);
  const rival = findClashes(set, wanted ?? {});
  if (rival.length > 0 && wanted !== null && set['NODE_EXTRA_CA_CERTS'] === wanted['NODE_EXTRA_CA_CERTS'])
    return bad('settings', `${file} names an earlier ${rival.join(', ')} of comet-cc`, SET);
  if (rival.length > 0) {
    const own = `${file} sets its own ${rival.join(', ')}`;
    return good('settings', `${own}, which wins over comet-cc env; comet-cc run is free of it`);
  }
  return editorCheck(env, wanted);
}

async function editorCheck(env: NodeJS.ProcessEnv, wanted: Readonly<Record<string, string>> | null): Promise<Check> {
  for (const file of EDITORS.map((editor) => editorSettingsFile(editor, process.platform, env))) {
    // No such editor, or one that takes nothing from it either.
    const variables = await readFileIfPresent(file)
      .then((text) => setVariables(text ?? ''))
      .catch(() => ({}));
    const rival = findClashes(variables, wanted ?? {});
    if (rival.length > 0) {
      const detail = `${file}: ${VARIABLES_KEY} sets another ${rival.join(', ')}; nothing is remembered in that editor`;
      return bad('settings', detail, 'comet-cc install-ca --settings, which wins over it, or take it out there');
    }
  }
  return good('settings', 'neither Claude Code nor an editor has proxy settings of its own');
}

/** Whether the editors that were set up still point to comet-cc; null where none was. */
export async function checkEditors(
  paths: HomePaths,
  wanted: Readonly<Record<string, string>> | null,
): Promise<Check | null> {
  try {
    const states = await inspectEditors(paths, wanted);
    const [lost] = states.filter(({ astray }) => astray.length > 0);
    if (lost !== undefined) {
      const fix = `comet-cc editor install ${lost.editor}; or comet-cc editor uninstall ${lost.editor}`;
      return bad('editors', `${lost.file}: ${lost.astray.join(', ')} changed, or the port or token did`, fix);
    }
    if (states.length === 0) return null;
    const verb = states.length === 1 ? 'points' : 'point';
    return good('editors', `${states.map(({ editor }) => editor).join(', ')} ${verb} to comet-cc`);
  } catch (error) {
    return bad('editors', getReason(error), "correct the editor's settings");
  }
}
