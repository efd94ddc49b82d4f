import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const HOOK = path.resolve('dist/hooks/session-start.js');
let dir: string;
let envFile: string;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), 'comet-cc-hook-'));
  envFile = path.join(dir, 'session.env');
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

function runHook(env: Record<string, string>) {
  const own = { PATH: process.env['PATH'] ?? '', HOME: dir, COMET_CC_HOME: dir, CLAUDE_ENV_FILE: envFile };
  const done = spawnSync(process.execPath, [HOOK], {
    env: { ...own, ...env },
    input: '{"hook_event_name":"SessionStart"}',
  });
  return { code: done.status, output: String(done.stdout) };
}

const ours = (): Record<string, string> => ({
  HTTPS_PROXY: 'http://comet-cc:token@127.0.0.1:8443',
  NODE_EXTRA_CA_CERTS: path.join(dir, 'certs', 'bundle.pem'),
});

/** What a Bash command of the session would see. */
function seenByBash(env: Record<string, string>): string {
  const script = `. ${envFile}; echo "$HTTPS_PROXY|$https_proxy|$NODE_EXTRA_CA_CERTS"`;
  return execFileSync('bash', ['-c', script], { env, encoding: 'utf8' }).trim();
}

describe('the SessionStart hook', () => {
  it('takes our proxy and bundle from Bash commands where the user had none', () => {
    expect(runHook(ours())).toEqual({ code: 0, output: '' });
    expect(seenByBash(ours())).toBe('||');
    expect(statSync(envFile).mode & 0o777).toBe(0o600);
  });

  it("gives back the user's own, whatever characters they hold", () => {
    mkdirSync(path.join(dir, 'run'));
    mkdirSync(path.join(dir, 'certs'));
    writeFileSync(
      path.join(dir, 'run', 'upstream-proxy.json'),
      JSON.stringify({ url: "http://a:b'c@proxy.test:3128" }),
    );
    writeFileSync(path.join(dir, 'certs', 'bundle.json'), JSON.stringify({ userFile: '/etc/company ca.pem' }));
    const env = { ...ours(), https_proxy: ours()['HTTPS_PROXY'] as string };
    expect(runHook(env)).toEqual({ code: 0, output: '' });
    expect(seenByBash(env)).toBe("http://a:b'c@proxy.test:3128|http://a:b'c@proxy.test:3128|/etc/company ca.pem");
  });

  it('leaves a session alone that does not go through us, and appends to what others wrote', () => {
    expect(runHook({ HTTPS_PROXY: 'http://proxy.test:3128' })).toEqual({ code: 0, output: '' });
    expect(existsSync(envFile)).toBe(false);
    writeFileSync(envFile, 'export OTHER=1\n');
    runHook(ours());
    expect(readFileSync(envFile, 'utf8').startsWith('export OTHER=1\n')).toBe(true);
  });

  it('says nothing and fails nothing without a file to write to', () => {
    expect(runHook({ ...ours(), CLAUDE_ENV_FILE: path.join(dir, 'no', 'such', 'dir') })).toEqual({
      code: 0,
      output: '',
    });
    expect(runHook({ ...ours(), CLAUDE_ENV_FILE: '' })).toEqual({ code: 0, output: '' });
  });
});
