import { readFile } from 'node:fs/promises';
import type { HomePaths } from '../../common/paths.ts';
import { inspectSettings } from '../../install/claude-code/index.ts';
import { inspectEditors, VARIABLES_KEY } from '../../install/editors/index.ts';
import { EDITORS, editorSettingsFile, userSettingsFile } from '../../install/index.ts';
import { bad, type Check, good } from './index.ts';

const DECISIVE = ['HTTPS_PROXY', 'https_proxy', 'NODE_EXTRA_CA_CERTS'] as const;

type Variables = Readonly<Record<string, unknown>>;

/**
 * Whether Claude Code's settings still hold what `install-ca --settings` wrote, and no editor sets something else.
 *
 * @param wanted  what Claude Code needs now; null where no token is made yet
 */
export async function checkSettings(
  paths: HomePaths,
  env: NodeJS.ProcessEnv,
  wanted: Readonly<Record<string, string>> | null,
): Promise<Check> {
  try {
    const edit = await inspectSettings(paths, wanted ?? {});
    if (edit !== null && wanted === null) {
      return bad(
        'settings',
        `${edit.file} points to comet-cc, but its token is gone`,
        'comet-cc install-ca --settings',
      );
    }
    if (edit !== null && edit.astray.length > 0) {
      const detail = `${edit.file} was changed, or the port was: ${edit.astray.join(', ')}`;
      return bad('settings', detail, 'comet-cc install-ca --settings; to leave it so, comet-cc uninstall-ca');
    }
    if (edit !== null) return good('settings', `${edit.file} points to comet-cc`);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return bad('settings', detail, 'correct the file; Claude Code reads plain JSON');
  }
  const file = userSettingsFile(env);
  const rival = clashes(await claudeVariables(file), wanted);
  if (rival.length > 0) {
    return good(
      'settings',
      `${file} sets its own ${rival.join(', ')}, which wins over comet-cc env; comet-cc run is free of it`,
    );
  }
  return editorCheck(env, wanted);
}

async function editorCheck(env: NodeJS.ProcessEnv, wanted: Readonly<Record<string, string>> | null): Promise<Check> {
  for (const file of editorSettingsFiles(process.platform, env)) {
    const rival = clashes(await editorVariables(file), wanted);
    if (rival.length > 0) {
      const detail = `${file}: ${VARIABLES_KEY} sets another ${rival.join(', ')}; nothing is remembered in that editor`;
      return bad('settings', detail, 'comet-cc install-ca --settings, which wins over it, or take it out there');
    }
  }
  return good('settings', 'neither Claude Code nor an editor has proxy settings of its own');
}

/** The user settings of VS Code and its kin. */
export function editorSettingsFiles(platform: NodeJS.Platform, env: NodeJS.ProcessEnv): string[] {
  return EDITORS.map((editor) => editorSettingsFile(editor, platform, env));
}

/** JSON with comments and commas after the last item, as editors allow it. @throws SyntaxError */
export function parseEditorJson(text: string): unknown {
  const plain = text.replace(/("(?:\\.|[^"\\])*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (_, quoted?: string) => quoted ?? '');
  return JSON.parse(plain.replace(/("(?:\\.|[^"\\])*")|,(?=\s*[}\]])/g, (_, quoted?: string) => quoted ?? ''));
}

function clashes(set: Variables, wanted: Readonly<Record<string, string>> | null): string[] {
  return DECISIVE.filter(
    (name) => set[name] !== undefined && set[name] !== (wanted?.[name] ?? wanted?.['HTTPS_PROXY']),
  );
}

async function claudeVariables(file: string): Promise<Variables> {
  try {
    const settings = JSON.parse(await readFile(file, 'utf8')) as { env?: Variables } | null;
    return settings?.env ?? {};
  } catch {
    return {}; // Claude Code takes nothing from it either.
  }
}

async function editorVariables(file: string): Promise<Variables> {
  try {
    const settings = parseEditorJson(await readFile(file, 'utf8')) as Record<string, unknown> | null;
    const entries = (settings?.[VARIABLES_KEY] ?? []) as readonly { name?: string; value?: unknown }[];
    return Object.fromEntries(entries.map(({ name = '', value }) => [name, value]));
  } catch {
    return {}; // No such editor, or one that takes nothing from it either.
  }
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
