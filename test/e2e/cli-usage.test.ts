import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';

let home: TestHome;

beforeAll(async () => {
  home = await createHomeWithCerts();
});

afterAll(async () => {
  await home.close();
});

it('can be run as npx runs it in a checkout: by its name, through a shell', async () => {
  const root = path.resolve(import.meta.dirname, '../..');
  const { stdout } = await execa('npx', ['--no-install', 'comet-cc', '--version'], {
    cwd: root,
    // With scripts, npm would rebuild dist while other tests use it.
    env: { npm_config_ignore_scripts: 'true' },
  });
  expect(stdout).toMatch(/^\d+\.\d+\.\d+$/);
});

describe('help', () => {
  it('goes to stdout, with exit code 0', async () => {
    const { code, stdout, stderr } = await home.run(['memory', 'ls', '--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/\nExamples?:\n {2}comet-cc/);
  });

  it('prints the version', async () => {
    expect((await home.run(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

describe('wrong usage', () => {
  it.each([
    ['no command', []],
    ['an unknown command', ['remember']],
    ['an unknown subcommand', ['memory', 'forgett']],
    ['an unknown flag', ['status', '--jsonn']],
    ['a missing argument', ['memory', 'show']],
    ['a value outside its choices', ['memory', 'show', 'mem_1', '--depth', '3']],
    ['a shell that is not known', ['env', '--shell', 'tcsh']],
    ['a port that is none', ['start', '--port', '70000']],
    ['a time that is none', ['memory', 'ls', '--since', 'yesterday']],
    ['a number that is none', ['memory', 'ls', '--limit', '0']],
    ['an importance that is none', ['memory', 'ls', '--importance', 'urgent']],
  ])('%s ends with 2 and writes nothing to stdout', async (_, args) => {
    const { code, stdout, stderr } = await home.run(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).not.toBe('');
  });
});

describe('without a daemon', () => {
  it.each([
    ['memory', 'ls'],
    ['memory', 'show', 'mem_1'],
    ['memory', 'search', 'anything'],
    ['memory', 'rm', 'mem_1', '--yes'],
    ['memory', 'restore', 's1'],
    ['session', 'ls'],
    ['session', 'brief'],
    ['flush'],
  ])('%s %s ends with 3 and says what to run', async (...args) => {
    const { code, stdout, stderr } = await home.run(args);
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toContain('comet-cc start');
  });
});

describe('a configuration that does not validate', () => {
  it('is named with file, key and what was expected', async () => {
    await mkdir(home.home, { recursive: true, mode: 0o700 });
    const file = path.join(home.home, 'config.json');
    await writeFile(file, JSON.stringify({ recall: { maxResults: 'many' } }));
    const { code, stderr } = await home.run(['start']);
    expect(code).toBe(1);
    expect(stderr).toContain(file);
    expect(stderr).toContain('recall.maxResults');
    expect(stderr).toContain('expected number');
    const doctor = await home.run(['doctor', '--json']);
    expect(JSON.parse(doctor.stdout).checks).toContainEqual(expect.objectContaining({ id: 'config', ok: false }));
    await writeFile(file, '{}');
  });

  it('is named with its variable when it comes from the environment', async () => {
    const { code, stderr } = await home.run(['start'], { env: { COMET_CC_UPSTREAM: 'http://example.com' } });
    expect(code).toBe(1);
    expect(stderr).toContain('COMET_CC_UPSTREAM: expected an https:// origin');
  });
});
