import { describe, expect, test } from 'vitest';
import { normalizeRemote, remoteUrl } from '../../../../memory/model/project.ts';

describe('the project key', () => {
  test.each([
    'https://github.com/acme/shop.git',
    'https://user:token@github.com/acme/shop',
    'git@github.com:acme/shop.git',
    'github.com:acme/shop/',
    'ssh://git@github.com:22/acme/shop.git',
    'git://GitHub.com/Acme/Shop.git',
  ])('%s is the same repository', (url) => expect(normalizeRemote(url)).toBe('github.com/acme/shop'));

  test.each(['/srv/git/shop.git', '../shop', 'file:///srv/git/shop.git', 'C:\\git\\shop', '', 'https://host/'])(
    '%j names no host',
    (url) => expect(normalizeRemote(url)).toBeNull(),
  );

  test('groups below the owner stay apart', () => {
    expect(normalizeRemote('git@gitlab.com:a/b/c.git')).toBe('gitlab.com/a/b/c');
  });

  test('origin comes before other remotes, and other sections do not count', () => {
    const config =
      '[core]\n\turl = x\n[remote "fork"]\n\turl = a:b/c\n[remote "origin"]\n\tfetch = +x\n\turl = "d:e/f"\n';
    expect(remoteUrl(config)).toBe('d:e/f');
    expect(remoteUrl('[remote "fork"]\n url=a:b/c\n[branch "main"]\n url = z')).toBe('a:b/c');
    expect(remoteUrl('[core]\n\tbare = false')).toBeNull();
  });
});
