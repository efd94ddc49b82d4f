import type { HomePaths } from '../../common/paths.ts';
import { inspectEditors } from '../../install/editors/index.ts';
import { bad, type Check, good } from './check.ts';

/** Whether the editors that were set up still point to comet-cc; null where none was. */
export async function checkEditors(
  paths: HomePaths,
  wanted: Readonly<Record<string, string>> | null,
): Promise<Check | null> {
  try {
    const states = await inspectEditors(paths, wanted);
    const [lost] = states.filter(({ astray }) => astray.length > 0);
    if (lost !== undefined) {
      const detail = `${lost.file}: ${lost.astray.join(', ')} changed, or the port or token did`;
      return bad(
        'editors',
        detail,
        `comet-cc editor install ${lost.editor}; or comet-cc editor uninstall ${lost.editor}`,
      );
    }
    if (states.length === 0) return null;
    const verb = states.length === 1 ? 'points' : 'point';
    return good('editors', `${states.map(({ editor }) => editor).join(', ')} ${verb} to comet-cc`);
  } catch (error) {
    return bad('editors', error instanceof Error ? error.message : String(error), "correct the editor's settings");
  }
}
