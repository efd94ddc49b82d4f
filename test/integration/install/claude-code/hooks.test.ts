import { execFileSync } from 'node:child_process';
import { chmod, lstat, mkdir, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type HomePaths, homePaths } from '../../../../common/paths.ts';
import { hookCommands } from '../../../../install/claude-code/entries.ts';
import { inspectHooks, installEntries, uninstallEntries } from '../../../../install/claude-code/index.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const commands = hookCommands('/usr/bin/node', '/opt/comet-cc/dist/hooks', (text) => `'${text}'`);
const MINE = '{\r\n    // mine\r\n    "model": "opus"\r\n}';
let dir = '';
let file = '';
let paths: HomePaths;

beforeEach(async () => {
  dir = await tempDir();
  paths = homePaths(path.join(dir, 'home'));
  file = path.join(dir, '.claude', 'settings.json');
});

async function settings(text: string): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text, { mode: 0o644 });
}

const text = (): Promise<string> => readFile(file, 'utf8');

describe('hooks in a settings file', () => {
  it('are taken out again to the very byte, mode and all, and the backup with them', async () => {
    await settings(MINE);
    const done = await installEntries(paths, 'hooks', file, commands);
    expect(done).toMatchObject({ changed: true, plain: false, backup: `${file}.before-comet-cc` });
    expect(await readFile(done.backup as string, 'utf8')).toBe(MINE);
    expect((await text()).split('\r\n').length).toBe((await text()).split('\n').length);
    expect(await inspectHooks(file, commands)).toMatchObject({
      events: { SessionStart: 'installed', PostCompact: 'installed' },
    });
    expect(await installEntries(paths, 'hooks', file, commands)).toMatchObject({ changed: false });
    expect(await uninstallEntries(paths, 'hooks', [])).toEqual([file]);
    expect(await text()).toBe(MINE);
    expect((await stat(file)).mode & 0o777).toBe(0o644);
    expect(await readdir(path.dirname(file))).toEqual(['settings.json']);
    expect(await readdir(paths.home)).toEqual([]);
    expect(await uninstallEntries(paths, 'hooks', [file])).toEqual([]);
  });

  it('go with their backup also where the folder of the settings was moved', async () => {
    await settings(MINE);
    await installEntries(paths, 'hooks', file, commands);
    const moved = path.join(dir, 'elsewhere');
    await rename(path.dirname(file), moved);
    await uninstallEntries(paths, 'hooks', [path.join(moved, 'settings.json')]);
    expect(await readdir(moved)).toEqual(['settings.json']);
    expect(await readFile(path.join(moved, 'settings.json'), 'utf8')).toBe(MINE);
  });

  it('leave a link that the file was replaced by since', async () => {
    await settings(MINE);
    await installEntries(paths, 'hooks', file, commands);
    const moved = path.join(dir, 'dotfile.json');
    await rename(file, moved);
    await symlink(moved, file);
    expect(await uninstallEntries(paths, 'hooks', [file])).toEqual([file]);
    expect([await readFile(moved, 'utf8'), (await lstat(file)).isSymbolicLink()]).toEqual([MINE, true]);
    expect(await readdir(path.dirname(file))).toEqual(['settings.json']);
  });

  it('are all recorded where several are added at the same time', async () => {
    const files = [1, 2, 3, 4].map((nth) => path.join(dir, `${nth}.json`));
    await Promise.all(files.map((each) => installEntries(paths, 'hooks', each, commands)));
    expect((await uninstallEntries(paths, 'hooks', [])).sort()).toEqual(files);
    expect(await readdir(dir)).toEqual(['home']);
    expect(await readdir(paths.home)).toEqual([]);
  });

  it('are added to a file by one of two at the same time; the other says to try again', async () => {
    await settings(MINE);
    const ways = await Promise.allSettled([
      installEntries(paths, 'hooks', file, commands),
      installEntries(paths, 'statusline', file, { command: 'comet-cc statusline' }),
    ]);
    expect(ways.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const refusal = ways.find((way) => way.status === 'rejected');
    expect(refusal?.reason).toMatchObject({ code: 'config_invalid', message: expect.stringContaining('try again') });
    for (const name of ['hooks', 'statusline'] as const) await uninstallEntries(paths, name, [file]);
    expect(await text()).toBe(MINE);
    expect(await readdir(path.dirname(file))).toEqual(['settings.json']);
  });

  it('leave no file where there was none', async () => {
    expect(await installEntries(paths, 'hooks', file, commands)).toMatchObject({
      changed: true,
      plain: true,
      backup: null,
    });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await uninstallEntries(paths, 'hooks', [file]);
    expect(await readdir(dir)).not.toContain('.claude');
  });

  it('go into a file without text, which Claude Code takes for no settings, and out of it again', async () => {
    await settings('\n');
    expect(await inspectHooks(file, commands)).toMatchObject({ plain: true });
    expect(await installEntries(paths, 'hooks', file, commands)).toMatchObject({ changed: true, plain: true });
    await uninstallEntries(paths, 'hooks', [file]);
    expect(await text()).toBe('\n');
  });

  it('leave a folder that was there, with nothing in it', async () => {
    await mkdir(path.dirname(file));
    await installEntries(paths, 'hooks', file, commands);
    await uninstallEntries(paths, 'hooks', []);
    expect(await readdir(path.dirname(file))).toEqual([]);
  });

  it('leave an empty project where it is', async () => {
    const project = path.join(dir, 'project');
    await mkdir(project);
    const local = path.join(project, '.claude', 'settings.local.json');
    await installEntries(paths, 'hooks', local, commands);
    await uninstallEntries(paths, 'hooks', []);
    expect(await readdir(project)).toEqual([]);
  });

  it('are taken out of what the user changed since, and no more than they', async () => {
    await settings(MINE);
    await installEntries(paths, 'hooks', file, commands);
    await writeFile(file, (await text()).replace('"opus"', '"sonnet"'));
    const moved = hookCommands('/usr/bin/node', '/srv/dist/hooks', (each) => each);
    expect(await inspectHooks(file, moved)).toMatchObject({ events: { SessionEnd: 'other' } });
    await installEntries(paths, 'hooks', file, moved);
    await uninstallEntries(paths, 'hooks', []);
    expect(await text()).toBe(MINE.replace('"opus"', '"sonnet"'));
  });

  it('are found without a note of the edit, and through a link', async () => {
    await settings(MINE);
    const link = path.join(dir, 'link.json');
    await symlink(file, link);
    expect(await installEntries(homePaths(path.join(dir, 'other')), 'hooks', link, commands)).toMatchObject({ file });
    expect(await uninstallEntries(paths, 'hooks', [link])).toEqual([file]);
    expect(await inspectHooks(link, commands)).toMatchObject({ events: { SessionStart: 'missing' } });
  });

  it('go into a file with a byte order mark, which Claude Code reads', async () => {
    await settings(`\uFEFF${MINE}`);
    expect(await installEntries(paths, 'hooks', file, commands)).toMatchObject({ changed: true });
    expect(await inspectHooks(file, commands)).toMatchObject({ events: { SessionStart: 'installed' } });
    await uninstallEntries(paths, 'hooks', [file]);
    expect(await text()).toBe(`\uFEFF${MINE}`);
  });

  it('leave alone a pipe or device behind a link, which a file would replace', async () => {
    const pipe = path.join(dir, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const link = path.join(dir, 'linked.json');
    await symlink(pipe, link);
    await expect(installEntries(paths, 'hooks', link, commands)).rejects.toMatchObject({ code: 'unsafe_file' });
    expect((await stat(pipe)).isFIFO()).toBe(true);
  });

  it('leave alone what is not UTF-8, whose bytes would be lost', async () => {
    const latin = Buffer.from('{"model": "caf\u00e9"}', 'latin1');
    await settings('');
    await writeFile(file, latin);
    await expect(installEntries(paths, 'hooks', file, commands)).rejects.toMatchObject({ code: 'config_invalid' });
    expect(await uninstallEntries(paths, 'hooks', [file])).toEqual([]);
    await settings(MINE);
    await installEntries(paths, 'hooks', file, commands);
    const saved = Buffer.concat([Buffer.from((await text()).replace('}', ',"a":"')), latin.subarray(-3, -2)]);
    await writeFile(file, Buffer.concat([saved, Buffer.from('"}')]));
    await expect(uninstallEntries(paths, 'hooks', [])).rejects.toMatchObject({ code: 'config_invalid' });
    expect((await readFile(file)).includes(saved)).toBe(true);
  });

  it('are not put into what is no settings', async () => {
    await settings('{"hooks": 7}');
    await chmod(file, 0o600);
    await expect(installEntries(paths, 'hooks', file, commands)).rejects.toMatchObject({ code: 'config_invalid' });
    expect(await text()).toBe('{"hooks": 7}');
    expect(await readdir(path.dirname(file))).toEqual(['settings.json']);
  });
});
