import { existsSync, statSync } from 'node:fs';
import { chmod, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../../../common/config.ts';
import { type HomePaths, homePaths } from '../../../../common/paths.ts';
import { prepareDaemon, proxyToken } from '../../../../engine/lifecycle/daemon.ts';
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

it.each([
  [' --require "/home/me/.vscode/js debug/bootloader.js"  --inspect-publish-uid=http', ''],
  [
    '--use-openssl-ca -r ./tracer.js --inspect-brk=0 --inspect-port=9230 --max-old-space-size=96',
    '--use-openssl-ca --inspect-port=9230 --max-old-space-size=96',
  ],
  ['--require=dd-trace/init --dns-result-order=ipv4first', '--dns-result-order=ipv4first'],
])('a debugger of the shell (%s) is not one of the daemon', async (given, left) => {
  const env = { NODE_OPTIONS: given, COMET_CC_HOME: paths.home };
  const config = async () => loadConfig(env).config;
  const setup = await prepareDaemon({ env, paths, config, term: { say() {} } }, {});
  expect(setup.env['NODE_OPTIONS']).toBe(left);
});
