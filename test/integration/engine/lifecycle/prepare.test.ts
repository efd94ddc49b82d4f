import { existsSync, statSync } from 'node:fs';
import { chmod, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type HomePaths, homePaths } from '../../../../common/paths.ts';
import { proxyToken } from '../../../../engine/lifecycle/daemon.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();
let dir = '';
let paths: HomePaths;

beforeEach(async () => {
  dir = await tempDir();
  paths = homePaths(path.join(dir, 'home'));
});

describe('the proxy token', () => {
  it('is created once, private, and the same for concurrent callers', async () => {
    const tokens = await Promise.all(Array.from({ length: 8 }, () => proxyToken(paths)));
    expect(new Set(tokens).size).toBe(1);
    expect(tokens[0]).toMatch(/^[\w-]{43}$/);
    expect(statSync(paths.proxyTokenFile).mode & 0o777).toBe(0o600);
    expect(statSync(paths.runDir).mode & 0o777).toBe(0o700);
  });

  it('is refused where others could read or replace it', async () => {
    await proxyToken(paths);
    await chmod(paths.proxyTokenFile, 0o644);
    await expect(proxyToken(paths)).rejects.toMatchObject({ code: 'unsafe_file' });
    await rm(paths.proxyTokenFile);
    await symlink(path.join(dir, 'elsewhere'), paths.proxyTokenFile);
    await expect(proxyToken(paths)).rejects.toMatchObject({ code: 'unsafe_file' });
    expect(existsSync(path.join(dir, 'elsewhere'))).toBe(false);
  });
});
