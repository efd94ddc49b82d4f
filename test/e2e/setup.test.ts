import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTestHome, type TestHome } from '../helpers/cli.ts';
import { readFolder } from '../helpers/temp-dir.ts';

const SETTINGS = '{\n  "model": "opus",\n  "env": { "EDITOR": "vi" }\n}\n';
const OWN_LINE = '{ "statusLine": { "type": "command", "command": "~/bin/line" } }\n';

let home: TestHome;
let env: Record<string, string>;
let settings: string;

beforeEach(async () => {
  home = await createTestHome();
  const bin = path.join(path.dirname(home.user), 'bin');
  await mkdir(bin);
  await writeFile(path.join(bin, 'systemctl'), '#!/bin/sh\nexit 0\n', { mode: 0o700 });
  env = { PATH: `${bin}:${process.env['PATH']}`, SHELL: '/bin/bash' };
  settings = path.join(home.user, '.claude', 'settings.json');
  await mkdir(path.dirname(settings));
});

afterEach(() => home.close());

const run = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await home.run(args, { env });
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
  return stdout;
};

interface Settings {
  readonly statusLine?: { readonly command: string };
  readonly hooks?: object;
  readonly enabledPlugins?: object;
}
const readSettings = async (): Promise<Settings> => JSON.parse(await readFile(settings, 'utf8')) as Settings;

describe.skipIf(process.platform !== 'linux')('setup', () => {
  it.each([
    ['with settings', SETTINGS, []],
    ['without settings', null, []],
    ['with the plugin', SETTINGS, ['--plugin']],
  ])('and its undo leave the home of the user as it was, byte for byte: %s', async (_, text, flags) => {
    if (text === null) await rm(path.dirname(settings), { recursive: true });
    else await writeFile(settings, text, { mode: 0o644 });
    const before = await readFolder(home.user);
    expect((await home.run(['setup'], { env })).code).toBe(2);
    expect(await readFolder(home.user)).toEqual(before);

    expect((await run('setup', '--yes', ...flags)).match(/^\w+ +done: /gm)).toHaveLength(4);
    const found = await readSettings();
    expect(found.statusLine?.command).toMatch(/comet-cc\.js' statusline$/);
    expect([found.hooks === undefined, found.enabledPlugins === undefined]).toEqual(
      flags.length > 0 ? [true, false] : [false, true],
    );
    const after = await readFolder(home.user);
    expect(Object.keys(after).filter((name) => /(completions\/comet-cc|comet-cc\.service)$/.test(name))).toHaveLength(
      2,
    );
    expect(await run('setup', '--yes', ...flags)).not.toContain('done: ');
    expect(await readFolder(home.user)).toEqual(after);

    expect((await run('setup', '--undo', '--yes')).match(/taken back/g)).toHaveLength(4);
    expect(await readFolder(home.user)).toEqual(before);
    expect(await readdir(path.dirname(home.home))).toEqual(['bin', 'u']);
    expect(await run('setup', '--undo', '--yes')).toContain('nothing to take back');
  });

  it('changes hooks for the plugin, never has both, and leaves a status line of the user alone', async () => {
    await writeFile(settings, OWN_LINE);
    const leave = ['--without', 'service', 'completion'];
    expect(await run('setup', '--yes', ...leave)).toMatch(/^statusline +left out: you have one of your own$/m);
    expect((await home.run(['statusline', 'install'])).stderr).toContain('a status line of yours');
    expect(await readSettings()).toMatchObject({ statusLine: { command: '~/bin/line' }, hooks: expect.anything() });
    await run('setup', '--yes', '--plugin', ...leave);
    expect(await readSettings()).toMatchObject({ enabledPlugins: { 'comet-cc@comet-cc': true } });
    expect((await readSettings()).hooks).toBeUndefined();
    expect(await run('setup', '--yes', ...leave)).toContain('the plugin has them');
    expect(await home.run(['hooks', 'install'], { env })).toMatchObject({ code: 1 });
    const status = await run('hooks', 'status');
    expect(status).toContain(`has them, enabled in ${settings}`);
    expect(status).not.toContain('hooks install');
    await run('setup', '--undo', '--yes');
    expect(await readFile(settings, 'utf8')).toBe(OWN_LINE);
  });

  it('says that Claude Code ignores settings with comments, and leaves a status line in them alone', async () => {
    const text = `// mine\n${OWN_LINE}`;
    await writeFile(settings, text);
    const { code, stdout, stderr } = await home.run(['setup', '--yes', '--without', 'service'], { env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('not plain JSON; correct it') });
    expect(stdout).toContain('statusline  left out: you have one of your own');
    await run('setup', '--undo', '--yes');
    expect(await readFile(settings, 'utf8')).toBe(text);
  });

  it('is taken back by uninstall too, with what was given to Claude Code by hand', async () => {
    await writeFile(settings, SETTINGS);
    await run('statusline', 'install');
    const server = { type: 'stdio', command: 'comet-cc', args: ['mcp'], env: {} };
    const mine = { type: 'stdio', command: 'other', args: ['mcp'] };
    const project = path.join(home.user, 'shop');
    const plugins = path.join(home.user, '.claude', 'plugins');
    const write = async (file: string, value: object): Promise<void> => {
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, JSON.stringify(value));
    };
    const known = { mine: { source: {} }, 'comet-cc': { installLocation: '/opt/comet-cc/hooks' } };
    await write(path.join(home.user, '.claude.json'), {
      projects: { [project]: { mcpServers: { memory: server, mine } } },
      mcpServers: { 'comet-cc': server },
    });
    await write(path.join(project, '.mcp.json'), { mcpServers: { 'comet-cc': server, mine } });
    await write(path.join(plugins, 'known_marketplaces.json'), known);
    await write(path.join(plugins, 'installed_plugins.json'), { version: 2, plugins: { 'comet-cc@comet-cc': [{}] } });
    await write(path.join(plugins, 'cache', 'comet-cc', 'comet-cc', '0.1.0', 'launch.json'), {});
    await mkdir(path.join(plugins, 'data', 'comet-cc-comet-cc'), { recursive: true });
    const { stdout } = await home.run(['uninstall', '--yes'], { env });
    expect(stdout).toContain('nothing of comet-cc is left');
    expect(stdout.match(/^claude-code .* of comet-cc in /gm)).toHaveLength(6);
    expect(await readFile(settings, 'utf8')).toBe(SETTINGS);
    const left = await readFolder(home.user);
    expect(Object.keys(left).filter((name) => name.includes('comet-cc'))).toEqual([]);
    expect(JSON.parse(await readFile(path.join(project, '.mcp.json'), 'utf8'))).toEqual({ mcpServers: { mine } });
    expect(await readFile(path.join(home.user, '.claude.json'), 'utf8')).toBe(
      JSON.stringify({ projects: { [project]: { mcpServers: { mine } } } }),
    );
  });
});
