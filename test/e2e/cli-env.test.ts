import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestHome, type TestHome } from '../helpers/cli.ts';

let home: TestHome;

beforeAll(async () => {
  home = await createTestHome();
});

afterAll(async () => {
  await home.close();
});

const variables = async (): Promise<Record<string, string>> =>
  (await home.json(['env', '--shell', 'json'])) as Record<string, string>;

describe('env', () => {
  it('prints exactly what Claude Code needs, and nothing else on stdout', async () => {
    expect(await variables()).toEqual({
      HTTPS_PROXY: expect.stringMatching(/^http:\/\/comet-cc:[\w-]{43}@127\.0\.0\.1:\d+$/),
      NODE_EXTRA_CA_CERTS: path.join(home.home, 'certs', 'bundle.pem'),
      CLAUDE_CODE_GATEWAY_HINT_HEADERS: '1',
      CLAUDE_CODE_TETHER_LIVE: '0',
    });
  });

  it('keeps the token from one run to the next', async () => {
    expect(await variables()).toEqual(await variables());
  });

  it('says on stderr that the daemon does not run', async () => {
    expect((await home.run(['env'])).stderr).toContain('comet-cc start');
  });

  it('gives bash lines that set the very values', async () => {
    const { stdout } = await home.run(['env', '--shell', 'bash']);
    const shown = await promisify(execFile)('bash', ['-c', `${stdout}\nprintf %s "$HTTPS_PROXY"`], { env: {} });
    expect(shown.stdout).toBe((await variables())['HTTPS_PROXY']);
  });

  it('takes the syntax from SHELL, and bash where that says nothing', async () => {
    expect((await home.run(['env'], { env: { SHELL: '/usr/bin/fish' } })).stdout).toMatch(/^set -gx HTTPS_PROXY 'http/);
    expect((await home.run(['env'], { env: { SHELL: '/bin/tcsh' } })).stdout).toMatch(/^export HTTPS_PROXY='http/);
    expect((await home.run(['env', '--shell', 'powershell'])).stdout).toMatch(/^\$env:HTTPS_PROXY = 'http/);
  });

  it('keeps the certificates that the user trusted before, also when asked again from its own environment', async () => {
    const own = path.join(home.user, 'own.pem');
    await writeFile(own, await readFile(path.join(home.home, 'certs', 'root.pem')));
    await home.run(['env'], { env: { NODE_EXTRA_CA_CERTS: own } });
    const bundle = path.join(home.home, 'certs', 'bundle.pem');
    await home.run(['env'], { env: { NODE_EXTRA_CA_CERTS: bundle } });
    expect((await readFile(bundle, 'utf8')).match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
  });
});

describe('install-ca and uninstall-ca', () => {
  it('makes certificates, changes nothing else, and undoes what it was asked to change byte for byte', async () => {
    const settings = path.join(home.user, 'settings.json');
    const before = '{\n    "model": "opus",\n    "env": { "A": "1" }\n}';
    await writeFile(settings, before);
    const env = { CLAUDE_CONFIG_DIR: home.user };

    expect(await home.json(['install-ca', '--json'], { env })).toMatchObject({
      root: { fingerprint: expect.stringMatching(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/) },
      bundle: { file: path.join(home.home, 'certs', 'bundle.pem') },
      settings: null,
      system: null,
    });
    expect(await readFile(settings, 'utf8')).toBe(before);

    const refused = await home.run(['install-ca', '--settings'], { env });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('--yes');
    expect(await readFile(settings, 'utf8')).toBe(before);

    const done = await home.run(['install-ca', '--settings', '--yes'], { env });
    expect(done.code).toBe(0);
    const token = new URL((await variables())['HTTPS_PROXY'] as string).password;
    expect(done.stdout + done.stderr).not.toContain(token);
    expect(JSON.parse(await readFile(settings, 'utf8'))).toMatchObject({
      model: 'opus',
      env: { A: '1', ...(await variables()) },
    });
    expect((await home.run(['install-ca', '--settings', '--yes'], { env })).stdout).toContain(
      'already points to comet-cc',
    );

    expect((await home.run(['uninstall-ca'], { env })).code).toBe(0);
    expect(await readFile(settings, 'utf8')).toBe(before);
    const again = await home.run(['uninstall-ca'], { env });
    expect(again).toMatchObject({ code: 0, stdout: 'nothing was installed\n' });
  });
});

describe('doctor', () => {
  it('lists checks with a fix for each that fails', async () => {
    const { code, stdout } = await home.run(['doctor', '--json']);
    const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: { id: string; ok: boolean; fix: string }[] };
    expect(code).toBe(1);
    expect(ok).toBe(false);
    expect(checks.filter((check) => !check.ok).every((check) => check.fix !== '')).toBe(true);
    expect(checks.find(({ id }) => id === 'engine')).toMatchObject({ ok: false, fix: 'comet-cc start' });
    expect(checks.map(({ id }) => id)).toEqual(
      expect.arrayContaining([
        'node',
        'platform',
        'config',
        'home',
        'certs',
        'port',
        'engine',
        'claude',
        'model',
        'upstream',
        'store',
        'embedder',
      ]),
    );
  });

  it("sees a NO_PROXY that covers the API in Claude Code's settings", async () => {
    const file = path.join(home.user, '.claude', 'settings.json');
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, '{"env":{"NO_PROXY":".anthropic.com"}}');
    const { checks } = JSON.parse((await home.run(['doctor', '--json'])).stdout) as { checks: { id: string }[] };
    expect(checks.find(({ id }) => id === 'upstream')).toMatchObject({
      ok: false,
      detail: 'NO_PROXY covers api.anthropic.com',
    });
    const { stderr } = await home.run(['run', process.execPath, '-e', '0']);
    expect(stderr).toContain('NO_PROXY covers api.anthropic.com, so nothing will be remembered');
    await rm(file);
  });

  it('finds all in order once the daemon runs', async () => {
    await home.json(['start', '--json']);
    // The store opens after the daemon has started.
    await home.flush();
    const { stdout } = await home.run(['doctor']);
    expect(stdout.split('\n').filter((line) => line.startsWith('problem'))).toEqual([]);
  });
});
