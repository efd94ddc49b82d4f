import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type HomePaths, homePaths } from '../../../common/paths.ts';
import {
  applyEdit,
  planEdit,
  readOwnFile,
  removeCreatedDirs,
  removeOwnFile,
  undoEdit,
  writeOwnFile,
} from '../../../install/edit-file.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();
let dir = '';
let paths: HomePaths;

beforeEach(async () => {
  dir = await tempDir();
  paths = homePaths(path.join(dir, 'home'));
});

const write = (...parts: string[]): Promise<void> =>
  writeOwnFile(paths, { file: path.join(dir, ...parts), content: 'marked', mark: 'mark' });
const remove = (...parts: string[]): Promise<void> => removeOwnFile(paths, path.join(dir, ...parts));

describe('directories for files of comet-cc', () => {
  it('are removed as far as they were created, and the record with them', async () => {
    await mkdir(path.join(dir, 'a', 'b'), { recursive: true });
    await write('a', 'b', 'c', 'd', 'file');
    await write('a', 'b', 'c', 'd', 'e', 'file');
    await remove('a', 'b', 'c', 'd', 'file');
    expect(await readdir(path.join(dir, 'a', 'b', 'c', 'd'))).toEqual(['e']);
    await remove('a', 'b', 'c', 'd', 'e', 'file');
    expect(await readdir(path.join(dir, 'a', 'b'))).toEqual([]);
    expect(await readdir(paths.home)).toEqual([]);
  });

  it('stay where they existed before, and are not recorded', async () => {
    await write('file');
    await remove('file');
    expect(await readdir(dir)).toEqual([]);
  });

  it('stay until they are empty', async () => {
    await write('x', 'y', 'file');
    await writeFile(path.join(dir, 'x', 'y', 'theirs'), '');
    await remove('x', 'y', 'file');
    expect(await readdir(path.join(dir, 'x', 'y'))).toEqual(['theirs']);
    await rm(path.join(dir, 'x', 'y', 'theirs'));
    await remove('x', 'y', 'file');
    expect(existsSync(path.join(dir, 'x'))).toBe(false);
  });

  it('go where only the file was removed before the program was killed', async () => {
    await write('x', 'y', 'file');
    await rm(path.join(dir, 'x', 'y', 'file'));
    await removeCreatedDirs(paths);
    expect([await readdir(dir), await readdir(paths.home)]).toEqual([['home'], []]);
  });

  it('are the same through a link', async () => {
    await mkdir(path.join(dir, 'real'));
    await symlink(path.join(dir, 'real'), path.join(dir, 'link'));
    await write('link', 'x', 'file');
    await remove('real', 'x', 'file');
    expect(await readdir(path.join(dir, 'real'))).toEqual([]);
  });

  it('stay where the record is damaged, which is reported and kept', async () => {
    await write('x', 'file');
    await writeFile(paths.installsFile, '{');
    await expect(remove('x', 'file')).rejects.toMatchObject({ code: 'config_invalid' });
    await expect(write('y', 'file')).rejects.toMatchObject({ code: 'config_invalid' });
    expect(existsSync(path.join(dir, 'x'))).toBe(true);
    expect(await readFile(paths.installsFile, 'utf8')).toBe('{');
  });
});

describe('a file of comet-cc', () => {
  it('replaces an earlier one, but no file of the user', async () => {
    await write('file');
    await write('file');
    expect(await readOwnFile(path.join(dir, 'file'), 'mark')).toEqual(Buffer.from('marked'));
    await writeFile(path.join(dir, 'file'), 'theirs');
    await expect(write('file')).rejects.toMatchObject({ code: 'unsafe_file' });
    expect(await readFile(path.join(dir, 'file'), 'utf8')).toBe('theirs');
  });
});

it('what a write of a settings file left when it was killed goes with the edit', async () => {
  const file = path.join(dir, 'settings.json');
  await writeFile(file, '{"model":"opus"}');
  await applyEdit(paths, await planEdit('env', file, { HTTPS_PROXY: 'http://127.0.0.1:1' }));
  await writeFile(`${file}.0123456789ab.tmp`, '{"model":"opus"}');
  await writeFile(`${file}.tmp.4711.1795000000000`, "Claude Code's own");
  await undoEdit(paths, 'env', file);
  expect((await readdir(dir)).toSorted()).toEqual(['home', 'settings.json', 'settings.json.tmp.4711.1795000000000']);
});
