import { mkdir, realpath, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  getHome,
  getPlatform,
  homePaths,
  isDirectoryName,
  isPipe,
  nodeProgram,
  resolveDirectory,
} from '../../../common/paths.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();

const [linux, darwin, windows] = (['linux', 'darwin', 'win32'] as const).map(getPlatform) as [
  ReturnType<typeof getPlatform>,
  ReturnType<typeof getPlatform>,
  ReturnType<typeof getPlatform>,
];

describe('where systems differ', () => {
  it('commands reach the daemon by a socket in the home, on Windows by a pipe of this home alone', () => {
    for (const posix of [linux, darwin]) {
      expect(homePaths('/home/ada/.comet-cc', posix)).toMatchObject({
        guardSocket: '/home/ada/.comet-cc/run/guard.sock',
        engineSocket: '/home/ada/.comet-cc/run/engine.sock',
      });
    }
    const at = (home: string) => windows.localAddress(home, 'engine');
    expect(at('C:\\Users\\Ada\\.comet-cc\\run')).toMatch(/^\\\\\.\\pipe\\comet-cc-[0-9a-f]{24}-engine$/);
    expect(at('C:\\Users\\Ada\\.comet-cc\\run')).toBe(at('c:\\users\\ada\\.comet-cc\\run\\'));
    expect(at('C:\\Users\\Ada\\.comet-cc\\run')).not.toBe(at('C:\\Users\\Bob\\.comet-cc\\run'));
    // CreateNamedPipe takes 256 characters, however long the home is.
    expect(at(`C:\\${'x'.repeat(400)}`).length).toBeLessThan(256);
    expect([isPipe(at('C:\\x')), isPipe(linux.localAddress('/x', 'engine'))]).toEqual([true, false]);
  });

  it('a child ends with all it started: its group, on Windows its tree', () => {
    expect(linux.endTree(4711)).toEqual({ kill: -4711 });
    expect(darwin.endTree(4711)).toEqual({ kill: -4711 });
    expect(windows.endTree(4711)).toEqual({ run: ['taskkill', '/pid', '4711', '/T', '/F'] });
  });

  it('modes, directory fsync and handing over are asked of systems that have them', () => {
    const { hasModes, syncsDirs, handsOver } = windows;
    expect({ hasModes, syncsDirs, handsOver }).toEqual({ hasModes: false, syncsDirs: false, handsOver: false });
    expect(darwin).toMatchObject({ hasModes: true, syncsDirs: true, handsOver: true });
  });
});

it('Node has its name on PATH where an upgrade removes its folder, unless that is of one terminal', async () => {
  const dir = await realpath(await tempDir());
  const at = (...parts: string[]): string => path.join(dir, ...parts);
  for (const name of ['Cellar', 'bin', 'other']) await mkdir(at(name));
  for (const file of [at('Cellar', 'node'), at('other', 'node')]) await writeFile(file, '');
  await symlink(at('Cellar', 'node'), at('bin', 'node'));
  await symlink(at('bin'), at('terminal'));
  const find = (...names: string[]) => nodeProgram(names.map((name) => at(name)).join(':'), at('Cellar', 'node'));
  expect(find('missing', 'other', 'terminal', 'bin')).toBe(at('bin', 'node'));
  expect([find('other', 'terminal'), find('Cellar', 'bin')]).toEqual([at('Cellar', 'node'), at('Cellar', 'node')]);
});

describe('the name of a directory', () => {
  it('is resolved from the home, from here, or left to the system that it is of', () => {
    expect(getHome({ COMET_CC_HOME: '~/memory' })).toBe(path.join(os.homedir(), 'memory'));
    expect(resolveDirectory('~')).toBe(os.homedir());
    expect(resolveDirectory('~/code/shop')).toBe(path.join(os.homedir(), 'code', 'shop'));
    expect(resolveDirectory('~work')).toBe(path.resolve('~work'));
    expect(resolveDirectory('shop')).toBe(path.resolve('shop'));
    expect(resolveDirectory('c:\\work\\shop\\')).toBe('C:\\work\\shop');
  });

  it('is absolute on one system at least', () => {
    expect(['/a', 'C:\\a', 'c:/a', '\\\\nas\\a'].map(isDirectoryName)).toEqual([true, true, true, true]);
    expect(['a', 'C:a', '~/a', '', 'https://a'].map(isDirectoryName)).toEqual([false, false, false, false, false]);
  });
});
