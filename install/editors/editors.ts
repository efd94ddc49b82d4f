import os from 'node:os';
import path from 'node:path';

/** Editors whose Claude Code extension reads the user's settings file, with the name of their directory. */
const FOLDERS = {
  vscode: 'Code',
  'vscode-insiders': 'Code - Insiders',
  vscodium: 'VSCodium',
  cursor: 'Cursor',
  windsurf: 'Windsurf',
} as const;

export type EditorName = keyof typeof FOLDERS;

export const EDITORS = Object.keys(FOLDERS) as readonly EditorName[];

export function editorSettingsFile(editor: EditorName, platform: NodeJS.Platform, env: NodeJS.ProcessEnv): string {
  const home = env['HOME'] || os.homedir();
  const roots: Partial<Record<NodeJS.Platform, string>> = {
    darwin: path.join(home, 'Library', 'Application Support'),
    win32: env['APPDATA'] || path.join(home, 'AppData', 'Roaming'),
  };
  const root = roots[platform] ?? (env['XDG_CONFIG_HOME'] || path.join(home, '.config'));
  return path.join(root, FOLDERS[editor], 'User', 'settings.json');
}
