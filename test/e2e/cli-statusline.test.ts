import { execFile } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLI, createTestHome, type TestHome } from '../helpers/cli.ts';

let home: TestHome;

beforeEach(async () => {
  home = await createTestHome();
});

afterEach(async () => {
  await home.close();
});

function line(input: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [CLI, 'statusline'],
      { env: { ...home.env, NO_COLOR: '1' } },
      (_, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
    );
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}

const given = JSON.stringify({ session_id: 's1', cwd: process.cwd(), model: { display_name: 'Opus' } });

describe('statusline', () => {
  it('prints one line and exits with 0 without a daemon, for any input', async () => {
    for (const input of [given, '', 'no json', '\0\0']) {
      expect(await line(input)).toEqual({ code: 0, stdout: 'memory: off, comet-cc is not running\n', stderr: '' });
    }
  });

  it('says what the daemon knows, and that it is paused', async () => {
    await home.json(['start', '--json']);
    expect(await line(given)).toMatchObject({ code: 0, stdout: 'memory: 0 kept\n' });
    await home.run(['pause']);
    expect(await line(given)).toMatchObject({ code: 0, stdout: 'memory paused: 0 kept\n' });
  });

  it('does not say that nothing is kept while the store is still opening', async () => {
    Object.assign(home.env, { COMET_FAULT: 'store:hang', COMET_CC_HOOK_MS: '' });
    await home.json(['start', '--json']);
    expect(await line(given)).toMatchObject({ code: 0, stdout: 'memory: no answer, see comet-cc status\n' });
  });
});
