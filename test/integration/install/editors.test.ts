import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { type HomePaths, homePaths } from '../../../common/paths.ts';
import { installEntries, uninstallEntries } from '../../../install/claude-code/index.ts';
import { editorSettingsFile } from '../../../install/editors/editors.ts';
import { inspectEditors } from '../../../install/editors/index.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const setUpEditor = async (...given: Parameters<typeof installEntries>): Promise<boolean> =>
  (await installEntries(...given)).changed;
const variables = { HTTPS_PROXY: 'http://comet-cc:token@127.0.0.1:8443', NODE_EXTRA_CA_CERTS: '/h/bundle.pem' };
const COMMENTED = `// mine
{
\t"b": 1, /* before a */
\t"claudeCode.environmentVariables": [
\t\t// keep this
\t\t{ "name": "NODE_EXTRA_CA_CERTS", "value": "/corp.pem" },
\t\t{ "name": "FOO", "value": "1" }, // and this
\t],
\t"a": [2, 3],
}
`;

let paths: HomePaths;
let file: string;

beforeEach(async () => {
  const dir = await tempDir();
  paths = homePaths(dir);
  file = path.join(dir, 'Code', 'User', 'settings.json');
});

async function given(text: string, mode = 0o644): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
  await chmod(file, mode);
}

const text = (): Promise<string> => readFile(file, 'utf8');

describe('an editor', () => {
  test('that has no settings yet has none afterwards, and no folder that was made for them', async () => {
    const dir = path.dirname(path.dirname(path.dirname(file)));
    for (const there of [dir, path.dirname(file)]) {
      await mkdir(there, { recursive: true });
      expect(await setUpEditor(paths, 'vscode', file, variables)).toBe(true);
      expect(await setUpEditor(paths, 'vscode', file, { ...variables, MORE: '1' })).toBe(true);
      expect(await uninstallEntries(paths, 'vscode', [])).toEqual([file]);
      expect(existsSync(path.join(dir, 'Code'))).toBe(there !== dir);
      expect([existsSync(there), existsSync(file)]).toEqual([true, false]);
    }
  });

  test.each([
    ['settings with comments', COMMENTED],
    ['settings on one line', '{"editor.fontSize": 14}'],
    ['no settings', '{}'],
    ['windows line ends', '{\r\n  "a": 1\r\n}\r\n'],
    ['an empty file', ''],
  ])('is set up and put back to the very bytes: %s', async (_, before) => {
    await given(before);
    expect(await setUpEditor(paths, 'vscode', file, variables)).toBe(true);
    const now = await text();
    for (const value of Object.values(variables)) expect(now).toContain(JSON.stringify(value));
    expect(now).toContain('settingsSync.ignoredSettings');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await inspectEditors(paths, variables)).toMatchObject([{ editor: 'vscode', astray: [] }]);
    expect(await setUpEditor(paths, 'vscode', file, variables)).toBe(false);
    expect(await uninstallEntries(paths, 'vscode', [])).toEqual([file]);
    expect(await text()).toBe(before);
    expect((await stat(file)).mode & 0o777).toBe(0o644);
    expect(existsSync(paths.installsFile)).toBe(false);
  });

  test('keeps comments, order and other entries', async () => {
    await given(COMMENTED);
    await setUpEditor(paths, 'cursor', file, variables);
    const now = await text();
    for (const kept of ['// mine', '/* before a */', '// keep this', '// and this', '"FOO"', '"a": [2, 3]']) {
      expect(now).toContain(kept);
    }
    expect(now).not.toContain('/corp.pem');
    expect(now.indexOf('"b"')).toBeLessThan(now.indexOf('"a"'));
  });

  test('what was changed since stays, and only ours goes', async () => {
    await given(COMMENTED);
    await setUpEditor(paths, 'vscode', file, variables);
    await writeFile(file, (await text()).replace('"b": 1', '"b": 7'));
    await uninstallEntries(paths, 'vscode', []);
    const now = await text();
    expect(now).toContain('"b": 7');
    expect(now).toContain('/corp.pem');
    for (const ours of ['127.0.0.1', 'settingsSync', 'HTTPS_PROXY']) expect(now).not.toContain(ours);
  });

  test('a new port or token takes the place of the old one, and the first settings come back', async () => {
    await given(COMMENTED);
    await setUpEditor(paths, 'vscode', file, variables);
    const next = { ...variables, HTTPS_PROXY: 'http://comet-cc:other@127.0.0.1:9000' };
    expect(await inspectEditors(paths, next)).toMatchObject([{ astray: ['HTTPS_PROXY'] }]);
    expect(await setUpEditor(paths, 'vscode', file, next)).toBe(true);
    expect(await text()).not.toContain('8443');
    await uninstallEntries(paths, 'vscode', []);
    expect(await text()).toBe(COMMENTED);
  });

  test('without settings gets them, and has none afterwards', async () => {
    await setUpEditor(paths, 'vscode', file, variables);
    expect(JSON.parse(await text())).toMatchObject({
      'claudeCode.environmentVariables': [{ name: 'HTTPS_PROXY' }, {}],
    });
    await uninstallEntries(paths, 'vscode', []);
    expect(existsSync(file)).toBe(false);
  });

  test('behind a link stays behind it', async () => {
    const real = path.join(await tempDir(), 'real.json');
    await writeFile(real, '{}');
    await mkdir(path.dirname(file), { recursive: true });
    await symlink(real, file);
    await setUpEditor(paths, 'vscode', file, variables);
    expect(await readFile(real, 'utf8')).toContain('HTTPS_PROXY');
    await uninstallEntries(paths, 'vscode', []);
    expect(await readFile(real, 'utf8')).toBe('{}');
  });

  test.each(['{ "a": ', '[]', '{"claudeCode.environmentVariables": {"A": "b"}}'])(
    'whose settings are not what they should be stays as it is: %s',
    async (before) => {
      await given(before);
      await expect(setUpEditor(paths, 'vscode', file, variables)).rejects.toMatchObject({ code: 'config_invalid' });
      expect(await text()).toBe(before);
      expect(existsSync(paths.installsFile)).toBe(false);
    },
  );
});

test('where an editor keeps its settings', () => {
  const env = { HOME: '/home/me', APPDATA: 'C:\\Roaming' };
  expect(editorSettingsFile('vscode', 'linux', env)).toBe('/home/me/.config/Code/User/settings.json');
  expect(editorSettingsFile('cursor', 'darwin', env)).toBe(
    '/home/me/Library/Application Support/Cursor/User/settings.json',
  );
});
