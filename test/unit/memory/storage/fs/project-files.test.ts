import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import {
  createProjectOf,
  looksSecret,
  normalizeRemote,
  remoteUrl,
} from '../../../../../memory/storage/fs/project-files.ts';

const root = mkdtempSync(path.join(os.tmpdir(), 'comet-cc-project-'));
const at = (...parts: string[]): string => path.join(root, ...parts);
const put = (file: string, text: string): void => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
};
const getProject = createProjectOf(() => 0);

afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('a working directory', () => {
  test('below a repository with a remote is known by the remote', () => {
    put(at('shop/.git/config'), '[remote "origin"]\n\turl = git@github.com:acme/shop.git\n');
    mkdirSync(at('shop/src/deep'), { recursive: true });
    expect(getProject(at('shop/src/deep'))).toBe('github.com/acme/shop');
  });

  test('in a worktree belongs to the repository it was made from', () => {
    put(at('local/.git/config'), '[core]\n');
    put(at('local/.git/worktrees/fix/commondir'), '../..\n');
    put(at('local/.git/worktrees/fix/gitdir'), `${at('fix/.git')}\n`);
    put(at('fix/.git'), `gitdir: ${at('local/.git/worktrees/fix')}\n`);
    expect(getProject(at('fix'))).toBe(at('local'));
    expect(getProject(at('local'))).toBe(at('local'));
  });

  test('in a submodule is known by the submodule', () => {
    put(at('shop/.git/modules/lib/config'), '[remote "origin"]\n\turl = https://github.com/acme/lib\n');
    put(at('shop/lib/.git'), 'gitdir: ../.git/modules/lib\n');
    expect(getProject(at('shop/lib'))).toBe('github.com/acme/lib');
  });

  test('whose .git names the directory of another repository is its own project', () => {
    put(at('own/.git/config'), '[core]\n');
    put(at('archive/.git'), 'gitdir: ../own/.git\n');
    put(at('nested/.git'), 'gitdir: hidden\n');
    put(at('nested/hidden/commondir'), `${at('own/.git')}\n`);
    put(at('nested/hidden/gitdir'), `${at('nested/.git')}\n`);
    expect(['own', 'archive', 'nested'].map((name) => getProject(at(name)))).toEqual([
      at('own'),
      at('archive'),
      at('nested'),
    ]);
  });

  test('whose git config is a device has no remote', () => {
    mkdirSync(at('device/.git'), { recursive: true });
    symlinkSync('/dev/zero', at('device/.git/config'));
    expect(getProject(at('device'))).toBe(at('device'));
  });

  test('of another system is its own project, however it is written', () => {
    for (const name of ['c:\\code\\shop', 'C:/code/shop', 'C:\\code\\shop\\', 'C:\\code\\x\\..\\shop'])
      expect(getProject(name)).toBe('C:\\code\\shop');
    expect(getProject('D:\\code\\shop')).toBe('D:\\code\\shop');
    expect(getProject('\\\\nas\\team\\shop')).toBe('\\\\nas\\team\\shop');
    expect(getProject('C:code')).toBe('');
  });

  test('without a repository is its own project, and none is none', () => {
    expect(getProject(at('plain'))).toBe(at('plain'));
    expect(getProject(null)).toBe('');
    expect(getProject('relative')).toBe('');
  });
});

test.each([
  '.env',
  'app/.env.production',
  'prod.env',
  '.envrc',
  '.npmrc',
  '.netrc',
  'deploy/id_rsa',
  'id_ed25519.pub',
  'certs/server.KEY',
  'certs/ca.pem.bak',
  'config/credentials.json',
  'config/master_secret.txt',
  'service-account.json',
  'api_token',
  'tokens.json',
  'infra/prod.tfvars',
  '.ssh/config',
  'home/.aws/anything.txt',
  'k8s/secrets/db.yaml',
  '.git/config',
])('%s may hold secrets', (path) => {
  expect(looksSecret(path)).toBe(true);
});

test.each([
  'src/db.ts',
  'src/tokens.ts',
  'src/password-form.tsx',
  'docs/secrets.md',
  '.env.example',
  'config/credentials.sample.json',
  'environment.ts',
  'tokenizer.json',
  'keys.go',
  'package.json',
])('%s is source', (path) => {
  expect(looksSecret(path)).toBe(false);
});

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

  test('a stray percent sign is literal', () => {
    expect(normalizeRemote('https://git.example/%zz/My%20Shop')).toBe('git.example/%zz/my shop');
  });

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
