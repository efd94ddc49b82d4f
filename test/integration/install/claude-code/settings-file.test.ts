import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { withSettings } from '../../../../install/index.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const VARIABLES = { HTTPS_PROXY: 'http://comet-cc:t@127.0.0.1:8443', NODE_EXTRA_CA_CERTS: '/h/certs/bundle.pem' };
const CA = { NODE_EXTRA_CA_CERTS: '/corp.pem' };
const PROXY = { HTTPS_PROXY: 'http://corp:1' };

/** What becomes of `args` with these variables in the settings of the organization and of the user. */
async function settle(args: string[], { managed = {}, user = {}, isTrusted = false }) {
  const dir = await tempDir();
  const at = (name: string): string => path.join(dir, name);
  await mkdir(at('claude'));
  await writeFile(at('managed.json'), JSON.stringify({ env: managed }));
  await writeFile(at('claude/settings.json'), JSON.stringify({ env: user }));
  const env = { HOME: dir, CLAUDE_CONFIG_DIR: at('claude') };
  const options = { variables: VARIABLES, env, cwd: dir, file: at('own.json'), managed: at('managed.json'), isTrusted };
  const settled = await withSettings(args, options);
  const own = await readFile(at('own.json'), 'utf8').catch(() => '{}');
  return { ...settled, own: (JSON.parse(own) as { env?: unknown }).env };
}

it('settings of the user give way to a file for this process alone', async () => {
  expect(await settle(['-p'], {})).toEqual({ args: ['-p'], problem: '', own: undefined });
  expect(await settle(['-p'], { user: VARIABLES })).toMatchObject({ args: ['-p'], problem: '' });
  const { args, problem, own } = await settle(['-p'], { user: { ...CA, ...PROXY } });
  expect([args[0], args[2], problem, own]).toEqual(['--settings', '-p', '', VARIABLES]);
});

it('another CA that wins is named, since Claude Code would not trust the proxy, unless the system does', async () => {
  const named = (text: string) => ({ problem: expect.stringContaining(text) });
  expect(await settle([], { managed: CA })).toMatchObject(named('comet-cc install-ca --system'));
  expect(await settle([], { managed: CA, isTrusted: true })).toMatchObject({ problem: '' });
  expect(await settle(['--settings', 'x'], { user: CA })).toMatchObject(named('you pass --settings'));
  expect(await settle(['--settings=x'], { user: CA, isTrusted: true })).toMatchObject({ problem: '' });
});

it('another proxy that wins is named', async () => {
  for (const isTrusted of [true, false]) {
    const problem = expect.stringContaining('another proxy');
    expect(await settle([], { managed: PROXY, isTrusted })).toMatchObject({ problem });
    expect(await settle(['--settings', 'x'], { user: PROXY, isTrusted })).toMatchObject({ problem });
  }
});
