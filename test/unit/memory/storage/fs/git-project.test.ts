import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { createProjectOf } from '../../../../../memory/storage/fs/git-project.ts';

const root = mkdtempSync(path.join(os.tmpdir(), 'comet-cc-project-'));
const at = (...parts: string[]): string => path.join(root, ...parts);
const put = (file: string, text: string): void => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
};
const projectOf = createProjectOf(() => 0);

afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('a working directory', () => {
  test('below a repository with a remote is known by the remote', () => {
    put(at('shop/.git/config'), '[remote "origin"]\n\turl = git@github.com:acme/shop.git\n');
    mkdirSync(at('shop/src/deep'), { recursive: true });
    expect(projectOf(at('shop/src/deep'))).toBe('github.com/acme/shop');
  });

  test('in a worktree belongs to the repository it was made from', () => {
    put(at('local/.git/config'), '[core]\n');
    put(at('local/.git/worktrees/fix/commondir'), '../..\n');
    put(at('fix/.git'), `gitdir: ${at('local/.git/worktrees/fix')}\n`);
    expect(projectOf(at('fix'))).toBe(at('local'));
    expect(projectOf(at('local'))).toBe(at('local'));
  });

  test('in a submodule is known by the submodule', () => {
    put(at('shop/.git/modules/lib/config'), '[remote "origin"]\n\turl = https://github.com/acme/lib\n');
    put(at('shop/lib/.git'), 'gitdir: ../.git/modules/lib\n');
    expect(projectOf(at('shop/lib'))).toBe('github.com/acme/lib');
  });

  test('of another system is its own project, however it is written', () => {
    for (const name of ['c:\\work\\shop', 'C:/work/shop', 'C:\\work\\shop\\', 'C:\\work\\x\\..\\shop'])
      expect(projectOf(name)).toBe('C:\\work\\shop');
    expect(projectOf('D:\\work\\shop')).toBe('D:\\work\\shop');
    expect(projectOf('\\\\nas\\team\\shop')).toBe('\\\\nas\\team\\shop');
    expect(projectOf('C:work')).toBe('');
  });

  test('without a repository is its own project, and none is none', () => {
    expect(projectOf(at('plain'))).toBe(at('plain'));
    expect(projectOf(null)).toBe('');
    expect(projectOf('relative')).toBe('');
  });
});
