import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { editorSettingsFile } from '../../install/index.ts';
import { createTestHome, type TestHome } from '../helpers/cli.ts';

/** As the editors themselves write them: VS Code after a year of use, Cursor as it comes. */
const RECORDED = {
  vscode: `{
    // Place your settings in this file to overwrite the default settings
    "editor.fontSize": 14,
    "files.exclude": { "**/.git": true, /* noise */ "**/node_modules": true },
    "claudeCode.environmentVariables": [
        { "name": "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "value": "16000" },
    ],
    "settingsSync.ignoredSettings": [ "editor.fontSize" ],
    "workbench.colorTheme": "Default Dark Modern", // at night
}
`,
  cursor: '{\r\n    "window.commandCenter": true,\r\n    "cursor.cpp.disabledLanguages": ["plaintext"]\r\n}',
} as const;

type Editor = keyof typeof RECORDED;
interface Doctor {
  readonly checks: readonly {
    readonly id: string;
    readonly ok: boolean;
    readonly detail: string;
    readonly fix: string;
  }[];
}

let home: TestHome;

beforeEach(async () => {
  home = await createTestHome();
});

afterEach(async () => {
  await home.close();
});

const getFile = (editor: Editor): string => editorSettingsFile(editor, process.platform, { HOME: home.user });

async function given(editor: Editor): Promise<string> {
  const file = getFile(editor);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, RECORDED[editor]);
  await chmod(file, 0o644);
  return file;
}

async function check(id: string): Promise<Doctor['checks'][number] | undefined> {
  const { stdout } = await home.run(['doctor', '--json']);
  return (JSON.parse(stdout) as Doctor).checks.find((each) => each.id === id);
}

describe.each(Object.keys(RECORDED) as Editor[])('%s', (editor) => {
  it('is set up by one command, checked by doctor, and put back to the byte', async () => {
    const file = await given(editor);
    expect(await home.json(['editor', 'status', '--json'])).toEqual([]);
    expect(await check('editors')).toBeUndefined();

    expect((await home.run(['editor', 'install', editor], { stdin: 'n\n' })).code).toBe(2);
    expect(await readFile(file, 'utf8')).toBe(RECORDED[editor]);

    const done = await home.run(['editor', 'install', editor, '--yes']);
    expect(done).toMatchObject({ code: 0, stderr: '' });
    expect(done.stdout).toContain(`comet-cc editor uninstall ${editor}`);
    const own = (await home.json(['env', '--shell', 'json'])) as Record<string, string>;
    const now = await readFile(file, 'utf8');
    for (const [name, value] of Object.entries(own)) {
      expect(now).toContain(JSON.stringify(name));
      expect(now).toContain(JSON.stringify(value));
    }
    const bare = (line: string): string => line.trim().replace(/,$/, '');
    const lines = now.split(/\r?\n/).map(bare);
    const kept = RECORDED[editor].split(/\r?\n/).filter((line) => !line.includes('settingsSync'));
    expect(kept.filter((line) => !lines.some((each) => each.includes(bare(line))))).toEqual([]);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await home.json(['editor', 'status', '--json'])).toMatchObject([{ editor, file, astray: [] }]);
    expect(await check('editors')).toMatchObject({ ok: true, detail: `${editor} points to comet-cc` });
    expect((await home.json(['editor', 'install', editor, '--yes', '--json'])) as object).toMatchObject({
      changed: false,
    });

    await writeFile(file, now.replace('127.0.0.1', '127.0.0.2'));
    expect(await check('editors')).toMatchObject({
      ok: false,
      fix: expect.stringContaining(`editor install ${editor}`),
    });
    expect((await home.run(['editor', 'status'])).stdout).toContain('changed since: HTTPS_PROXY');
    await writeFile(file, now);

    expect((await home.run(['editor', 'uninstall', editor])).stdout).toContain(file);
    expect(await readFile(file, 'utf8')).toBe(RECORDED[editor]);
    expect((await stat(file)).mode & 0o777).toBe(0o644);
    expect(await home.json(['editor', 'status', '--json'])).toEqual([]);
    expect(existsSync(path.join(home.home, 'installs.json'))).toBe(false);
    expect((await home.run(['editor', 'uninstall', editor])).stdout).toContain('was not set up');
  });
});

it('two editors are set up and undone each by itself', async () => {
  for (const editor of ['vscode', 'cursor'] as const) {
    await given(editor);
    await home.json(['editor', 'install', editor, '--yes', '--json']);
  }
  expect(await check('editors')).toMatchObject({ ok: true, detail: 'vscode, cursor point to comet-cc' });
  await home.run(['editor', 'uninstall', 'vscode']);
  expect(await readFile(getFile('vscode'), 'utf8')).toBe(RECORDED.vscode);
  expect(await check('editors')).toMatchObject({ ok: true, detail: 'cursor points to comet-cc' });
});
