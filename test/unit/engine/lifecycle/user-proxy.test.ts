import { lstat, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { Config } from '../../../../common/config.ts';
import { homePaths } from '../../../../common/paths.ts';
import type { GuardStatus } from '../../../../engine/lifecycle/control.ts';
import { claudeEnv, otherProxy, rememberProxy, userProxy } from '../../../../engine/lifecycle/user-proxy.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const OURS = { HTTPS_PROXY: 'http://comet-cc:t@127.0.0.1:8443' };
const THEIRS = 'http://me:secret@proxy.example:3128';
const config = Config.parse({});
const straight = { url: '', noProxy: '', problem: '' };
const fresh = async () => homePaths(await tempDir());
const getFile = (paths: ReturnType<typeof homePaths>): string => path.join(paths.runDir, 'upstream-proxy.json');

it('what the environment names is used, and kept in a private file for shells that name ours', async () => {
  const paths = await fresh();
  const found = await userProxy(paths, config, { https_proxy: THEIRS, NO_PROXY: 'near.example' });
  expect(found).toEqual({ url: THEIRS, noProxy: 'near.example', problem: '' });
  expect((await lstat(getFile(paths))).mode & 0o777).toBe(0o600);
  expect(await userProxy(paths, config, OURS)).toEqual(found);
  expect(await userProxy(paths, config, { COMET_CC_SERVICE: '1' })).toEqual(found);
  expect(await userProxy(paths, config, { ...OURS, no_proxy: 'other' })).toEqual({ ...found, noProxy: 'other' });
});

it('HTTP_PROXY alone is used, as Claude Code does for https, and HTTPS_PROXY wins', async () => {
  const paths = await fresh();
  for (const name of ['HTTP_PROXY', 'http_proxy']) {
    expect(await userProxy(paths, config, { [name]: THEIRS })).toEqual({ ...straight, url: THEIRS });
    expect(await userProxy(paths, config, { ...OURS, [name]: THEIRS })).toEqual({ ...straight, url: THEIRS });
    expect(await userProxy(paths, config, { [name]: 'http://other', HTTPS_PROXY: THEIRS })).toMatchObject({
      url: THEIRS,
    });
  }
});

it('a proxy without a scheme is an http proxy, as the configuration of the daemon needs it', async () => {
  const paths = await fresh();
  const { url, problem } = await userProxy(paths, config, { HTTPS_PROXY: 'me:secret@proxy.example:3128' });
  expect({ url, problem }).toEqual({ url: THEIRS, problem: '' });
  expect(Config.safeParse({ upstreamProxy: url }).success).toBe(true);
  await writeFile(getFile(paths), JSON.stringify({ url: 'me:secret@proxy.example:3128' }));
  expect((await userProxy(paths, config, OURS)).url).toBe(THEIRS);
});

it('a shell without any proxy ends the memory of one', async () => {
  const paths = await fresh();
  await userProxy(paths, config, { HTTPS_PROXY: THEIRS });
  expect(await userProxy(paths, config, {})).toEqual(straight);
  expect(await userProxy(paths, config, OURS)).toEqual(straight);
});

it('env keeps the proxy that it is about to replace, and never takes ours for it', async () => {
  const paths = await fresh();
  await rememberProxy(paths, { HTTPS_PROXY: THEIRS });
  await rememberProxy(paths, OURS);
  await rememberProxy(paths, {});
  expect(JSON.parse(await readFile(getFile(paths), 'utf8'))).toEqual({ url: THEIRS, noProxy: '' });
});

it('the setting wins, and can say that there is none', async () => {
  const paths = await fresh();
  const named = Config.parse({ upstreamProxy: 'http://set.example:1' });
  expect(await userProxy(paths, named, { HTTPS_PROXY: THEIRS })).toMatchObject({ url: 'http://set.example:1' });
  const off = Config.parse({ upstreamProxy: 'off' });
  expect(await userProxy(paths, off, { HTTPS_PROXY: THEIRS })).toEqual(straight);
  expect(Config.safeParse({ upstreamProxy: 'socks5://p:1' }).success).toBe(false);
});

it('what cannot be used is said, without its credentials; a damaged note counts as none', async () => {
  const paths = await fresh();
  const { url, problem } = await userProxy(paths, config, { HTTPS_PROXY: 'socks5://me:secret@p:1080' });
  expect(url).toBe('');
  expect(problem).toContain('HTTPS_PROXY');
  expect(problem).not.toContain('secret');
  await rememberProxy(paths, { HTTPS_PROXY: THEIRS });
  await writeFile(getFile(paths), '{"url":');
  expect(await userProxy(paths, config, OURS)).toEqual(straight);
});

it('a daemon that uses another proxy than this shell names is told, without credentials', () => {
  const told = (used: string | null, env: NodeJS.ProcessEnv, upstreamProxy = ''): string => {
    const guard = { upstream: 'https://api.anthropic.com', upstream_proxy: used } as GuardStatus;
    return otherProxy(guard, Config.parse({ upstreamProxy }), env);
  };
  const name = 'http://proxy.example:3128';
  const says = `not ${name}; comet-cc restart changes that`;
  expect(told(null, { HTTPS_PROXY: THEIRS })).toBe(`the daemon still uses no proxy, ${says}`);
  expect(told('http://old.example:1', { HTTPS_PROXY: THEIRS })).toContain(`http://old.example:1, ${says}`);
  expect(told(null, {}, THEIRS)).toContain(says);
  const silent = [
    told(name, { HTTPS_PROXY: THEIRS }),
    told(name, {}),
    told(name, OURS),
    told(null, { HTTPS_PROXY: THEIRS, NO_PROXY: '.anthropic.com' }),
    told(null, { HTTPS_PROXY: THEIRS }, 'off'),
    told(null, { HTTPS_PROXY: 'socks5://p:1080' }),
  ];
  expect(silent).toEqual(silent.map(() => ''));
});

it("a proxy and CA that only Claude Code's settings name are the user's, and ours there replace none of the shell", async () => {
  const [paths, home] = [await fresh(), await tempDir()];
  const bundle = path.join(paths.certsDir, 'bundle.pem');
  const read = async (env: object, shell = {}) => {
    await mkdir(path.join(home, '.claude'), { recursive: true });
    await writeFile(path.join(home, '.claude', 'settings.json'), JSON.stringify({ env }));
    const { HOME: _, ...found } = await claudeEnv({ HOME: home, ...shell }, paths);
    return found;
  };
  const theirs = { HTTPS_PROXY: THEIRS, NO_PROXY: 'near.example', NODE_EXTRA_CA_CERTS: '/etc/ca.pem' };
  expect(await read({ ...theirs, EDITOR: 'vi' }, { NODE_EXTRA_CA_CERTS: '/old.pem' })).toEqual(theirs);
  const ours = { ...OURS, NODE_EXTRA_CA_CERTS: bundle };
  expect(await read(ours)).toEqual(ours);
  expect(await read(ours, theirs)).toEqual(theirs);
});
