import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type HomePaths, homePaths } from '../../../common/paths.ts';
import { makeFolder, removeMadeFolder } from '../../../install/created-dirs.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();
let dir = '';
let paths: HomePaths;

beforeEach(async () => {
  dir = await tempDir();
  paths = homePaths(path.join(dir, 'home'));
});

describe('folders of somebody else', () => {
  it('are removed as far as they were made, and the note with them', async () => {
    const [theirs, ours] = [path.join(dir, 'a', 'b'), path.join(dir, 'a', 'b', 'c', 'd')];
    await mkdir(theirs, { recursive: true });
    await makeFolder(paths, ours);
    await makeFolder(paths, path.join(ours, 'e'));
    expect(existsSync(path.join(ours, 'e'))).toBe(true);
    await removeMadeFolder(paths, path.join(ours, 'e'));
    expect(await readdir(theirs)).toEqual([]);
    expect(await readdir(paths.home)).toEqual([]);
  });

  it('stay where they were there, and nothing is noted', async () => {
    await makeFolder(paths, dir);
    await removeMadeFolder(paths, dir);
    expect(await readdir(dir)).toEqual([]);
  });

  it('stay while something is in them, and go once nothing is', async () => {
    const made = path.join(dir, 'x', 'y');
    await makeFolder(paths, made);
    await writeFile(path.join(made, 'theirs'), '');
    await removeMadeFolder(paths, made);
    expect(await readdir(made)).toEqual(['theirs']);
    await rm(path.join(made, 'theirs'));
    await removeMadeFolder(paths, made);
    expect(existsSync(path.join(dir, 'x'))).toBe(false);
  });

  it('are the same through a link', async () => {
    await mkdir(path.join(dir, 'real'));
    await symlink(path.join(dir, 'real'), path.join(dir, 'link'));
    await makeFolder(paths, path.join(dir, 'link', 'x'));
    await removeMadeFolder(paths, path.join(dir, 'real', 'x'));
    expect(await readdir(path.join(dir, 'real'))).toEqual([]);
  });

  it('all stay where the note is damaged', async () => {
    await makeFolder(paths, path.join(dir, 'x'));
    await writeFile(paths.foldersFile, '{');
    await removeMadeFolder(paths, path.join(dir, 'x'));
    expect(existsSync(path.join(dir, 'x'))).toBe(true);
  });
});
