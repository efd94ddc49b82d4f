import { execFileSync, spawn } from 'node:child_process';
import { chmod, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { homePaths } from '../../common/paths.ts';
import { createStranger, createTestHome, type TestHome } from '../helpers/cli.ts';

interface Doctor {
  readonly ok: boolean;
  readonly checks: readonly {
    readonly id: string;
    readonly ok: boolean;
    readonly detail: string;
    readonly fix: string;
  }[];
}

const RAN = ['run', '--', process.execPath, '-e', 'console.log("it ran"); process.exit(6)'];

async function doctor(home: TestHome, env: Readonly<Record<string, string>> = {}): Promise<Doctor> {
  return JSON.parse((await home.run(['doctor', '--json'], { env })).stdout) as Doctor;
}

describe.concurrent('a config.json', () => {
  let home: TestHome;
  let file: string;

  beforeAll(async () => {
    home = await createTestHome();
    file = path.join(home.home, 'config.json');
    await mkdir(home.home, { mode: 0o700 });
  });

  afterAll(async () => {
    await rm(file, { recursive: true, force: true });
    await home.close();
  });

  it.sequential.each([
    ['that is no JSON', '{ "port": 8443,', 'is not JSON'],
    ['that is no object', '[]', '(top level): expected object, received array'],
    ['with an unknown key', '{"prot":1}', 'prot: no such key; expected one of port, upstream'],
    ['with an unknown key below', '{"trim":{"keepTurn":3}}', 'trim.keepTurn: no such key; expected one of mode'],
    ['with a wrong type', '{"trim":{"keepTurns":"3"}}', 'trim.keepTurns: expected number, received string'],
    ['with a value too small', '{"trim":{"keepTurns":-1}}', 'trim.keepTurns: expected number to be >=0'],
    ['with none of its choices', '{"llm":"gpt"}', 'llm: expected one of "claude"|"openai"|"local"|"off"'],
    ['that would send requests in the clear', '{"upstream":"http://x.com"}', 'upstream: expected an https:// origin'],
  ])('%s is named with file, key and what was expected', async (_, text, says) => {
    await writeFile(file, text);
    const { code, stdout, stderr } = await home.run(['status']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(file);
    expect(stderr).toContain(says);
  });

  it.sequential('is named by every command that needs it and by doctor, and run runs the command', async () => {
    await writeFile(file, '{"recall":{"maxResults":"many"}}');
    const says = `${file} does not validate: recall.maxResults: expected number, received string`;
    await mkdir(homePaths(home.home).nodesDir, { recursive: true });
    const commands = [['start'], ['env'], ['install-ca'], ['memory', 'ls'], ['flush'], ['restart']];
    for (const { code, stderr } of await Promise.all(commands.map((args) => home.run(args)))) {
      expect(code).not.toBe(0);
      // Once, also where it is why no daemon could be started.
      expect(stderr.split(says)).toHaveLength(2);
    }
    const ran = await home.run(RAN);
    expect(ran).toMatchObject({ code: 6, stdout: 'it ran\n', stderr: expect.stringContaining(says) });
    const { checks } = await doctor(home);
    expect(checks.find(({ id }) => id === 'config')).toMatchObject({
      ok: false,
      detail: expect.stringContaining(file),
    });
    expect((await home.run(['stop', '--now'])).code).toBe(0);
    expect((await home.run(['logs'])).code).toBe(0);
  });

  it.sequential('that is a folder is said to be one', async () => {
    await rm(file);
    await mkdir(file);
    expect((await home.run(['start'])).stderr).toContain(`${file} is a folder; a file was expected`);
    await rm(file, { recursive: true });
  });

  it.sequential('that leads to a pipe without an end is refused', async () => {
    const pipe = path.join(home.user, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const endless = spawn('sh', ['-c', 'exec yes > "$0"', pipe]);
    await symlink(pipe, file);
    expect(await home.run(['start'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`${file} is a pipe or device; a file was expected`),
    });
    endless.kill();
    await rm(file);
  });

  it.sequential('broken while the daemon runs is named by doctor and changes nothing until a restart', async () => {
    await home.json(['start', '--json']);
    await writeFile(file, '{"port":"x"}');
    expect((await home.run(['status'])).code).toBe(0);
    expect(await home.run(['memory', 'ls'])).toMatchObject({ code: 0, stderr: 'nothing is remembered yet\n' });
    expect((await doctor(home)).checks.find(({ id }) => id === 'config')?.ok).toBe(false);
    expect(await home.run(['restart'])).toMatchObject({ code: 1, stderr: expect.stringContaining('port: expected') });
    expect(await home.json(['status', '--json'])).toMatchObject({ running: true, engine: { state: 'healthy' } });
    await rm(file);
  });

  it.sequential('is not blamed for what a variable says', async () => {
    const env = { COMET_CC_TRIM_KEEP_TURNS: 'few' };
    const { code, stderr } = await home.run(['start'], { env });
    expect(code).toBe(1);
    expect(stderr).toContain('COMET_CC_TRIM_KEEP_TURNS: expected number');
    expect(stderr).not.toContain('config.json');
  });
});

describe.concurrent('a home', () => {
  const homes: TestHome[] = [];
  const made = async (): Promise<TestHome> => {
    const home = await createTestHome();
    homes.push(home);
    return home;
  };

  afterAll(() => Promise.all(homes.map((home) => home.close())));

  it('that is a file stays as it is; start and doctor say so, run runs the command', async () => {
    const home = await made();
    await writeFile(home.home, 'precious');
    expect(await home.run(['start'])).toMatchObject({ code: 1, stderr: expect.stringContaining(home.home) });
    expect(await home.run(RAN)).toMatchObject({ code: 6, stdout: 'it ran\n' });
    expect((await home.run(['status'])).code).toBe(3);
    const check = (await doctor(home)).checks.find(({ id }) => id === 'home');
    expect(check).toMatchObject({ ok: false, detail: `${home.home} is no folder` });
    expect(await readFile(home.home, 'utf8')).toBe('precious');
    const { checks } = await doctor(home, { COMET_CC_HOME: path.join(home.home, 'a', 'b') });
    const [folder, certs] = ['home', 'certs'].map((name) => checks.find(({ id }) => id === name));
    expect(folder).toMatchObject({ ok: false, detail: expect.stringContaining(`${home.home} is no folder`) });
    expect(certs).toMatchObject({ ok: true, fix: '' });
  });

  it('of a newer version: start says that memory is off, and status, status line and run do not say it is on', async () => {
    const home = await createTestHome();
    await mkdir(home.home, { mode: 0o700 });
    await writeFile(path.join(home.home, 'schema.json'), '{"schema":99}');
    const claude = path.join(home.user, 'claude');
    await writeFile(claude, '#!/bin/sh\nexit 0\n', { mode: 0o700 });
    const off = expect.stringMatching(/^memory is off: this home was written by a newer comet-cc/m);
    expect(await home.run(['start'])).toMatchObject({ code: 0, stderr: off });
    expect((await home.run(['status'])).stdout).toMatch(/^memory +off: the store is not open$/m);
    expect((await home.run(['statusline'], { stdin: '{}' })).stdout).toContain('no answer, see comet-cc status');
    const ran = await home.run(['run', claude]);
    expect(ran).toMatchObject({ code: 0, stderr: expect.stringContaining('no answer; see comet-cc status') });
    await home.close();
  });

  it('that others can read is closed to them by start', async () => {
    const home = await made();
    await mkdir(home.home);
    await chmod(home.home, 0o755);
    expect((await doctor(home)).checks.find(({ id }) => id === 'home')?.detail).toContain('open to others (755)');
    await home.json(['start', '--json']);
    expect((await stat(home.home)).mode & 0o777).toBe(0o700);
    expect((await doctor(home)).checks.find(({ id }) => id === 'home')?.ok).toBe(true);
  });

  it('with a file where a folder belongs costs memory, never the command', async () => {
    const home = await made();
    await mkdir(home.home, { mode: 0o700 });
    for (const name of ['run', 'certs', 'logs']) {
      const file = path.join(home.home, name);
      await rm(file, { recursive: true, force: true });
      await writeFile(file, 'in the way', { mode: 0o600 });
      const [start, ran, told] = await Promise.all([['start'], RAN, ['doctor']].map((args) => home.run(args)));
      expect(start).toMatchObject({ code: 1, stderr: expect.stringContaining(file) });
      expect(ran).toMatchObject({ code: 6, stdout: 'it ran\n' });
      expect(told?.stdout).toContain(file);
      await rm(file);
    }
    await home.json(['start', '--json']);
  });

  it('with a line break in its name is named by start, env, run and doctor, and is not made', async () => {
    const home = await made();
    const env = { COMET_CC_HOME: path.join(home.user, 'two\nlines') };
    const says = `COMET_CC_HOME has a line break or another control character: "${home.user}/two\\nlines"`;
    for (const args of [['start'], ['env']])
      expect(await home.run(args, { env })).toMatchObject({ code: 1, stderr: expect.stringContaining(says) });
    expect(await home.run(RAN, { env })).toMatchObject({ code: 6, stderr: expect.stringContaining(says) });
    expect((await doctor(home, env)).checks.find(({ id }) => id === 'home')).toMatchObject({ ok: false, detail: says });
    await expect(stat(env.COMET_CC_HOME)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('too long for a socket is told how long it may be, by start, run and doctor; the longest one works', async () => {
    const home = await made();
    const [, most] = /at most (\d+) bytes/.exec(
      (await home.run(['start'], { env: { COMET_CC_HOME: path.join(home.user, 'x'.repeat(100)) } })).stderr,
    ) as unknown as [string, string];
    const longest = path.join(home.user, 'x'.repeat(Number(most) - Buffer.byteLength(home.user) - 1));
    const tooLong = { COMET_CC_HOME: `${longest}x` };
    expect((await home.run(['start'], { env: tooLong })).code).toBe(1);
    const ran = await home.run(RAN, { env: tooLong });
    expect(ran).toMatchObject({ code: 6, stderr: expect.stringContaining(`at most ${most} bytes`) });
    const check = (await doctor(home, tooLong)).checks.find(({ id }) => id === 'home');
    expect(check).toMatchObject({ ok: false, fix: expect.stringContaining(most) });
    const fits = { env: { COMET_CC_HOME: longest } };
    expect(await home.json(['start', '--json'], fits)).toMatchObject({ engine: { state: 'healthy' } });
    expect((await home.run(['stop', '--now'], fits)).code).toBe(0);
  });
});

describe.concurrent('a socket or port', () => {
  let home: TestHome;

  beforeAll(async () => {
    home = await createTestHome();
    await mkdir(path.join(home.home, 'run'), { recursive: true, mode: 0o700 });
  });

  afterAll(async () => {
    await home.close();
  });

  it.sequential('that is a regular file is named and left, and run runs the command', async () => {
    const file = path.join(home.home, 'run', 'guard.sock');
    await writeFile(file, 'precious');
    for (const args of [['start'], ['status'], ['stop']]) {
      expect(await home.run(args)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`${file} is not a socket`),
      });
    }
    expect(await home.run(RAN)).toMatchObject({ code: 6, stdout: 'it ran\n' });
    expect((await doctor(home)).checks.find(({ id }) => id === 'engine')?.detail).toContain(file);
    expect(await readFile(file, 'utf8')).toBe('precious');
    await rm(file);
  });

  it.sequential('of another program is named by start, run and doctor, and that program continues', async () => {
    const port = Number(home.env['COMET_CC_PORT']);
    const stranger = await createStranger(port);
    try {
      expect((await home.run(['start'])).stderr).toContain(`port ${port} is used by another program`);
      const ran = await home.run(RAN);
      expect(ran).toMatchObject({ code: 6, stdout: 'it ran\n' });
      expect(ran.stderr).toContain(`port ${port} is used by another program`);
      expect((await doctor(home)).checks.find(({ id }) => id === 'port')).toMatchObject({ ok: false });
      expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200);
    } finally {
      await stranger.close();
    }
  });

  it.sequential('of a stranger who says nothing at all holds nothing up', async () => {
    const port = Number(home.env['COMET_CC_PORT']);
    const mute = net.createServer((socket) => socket.on('error', () => {}));
    await new Promise<void>((resolve) => mute.listen(port, '127.0.0.1', resolve));
    try {
      const { stderr } = await home.run(['start']);
      const log = path.join(home.home, 'logs', 'guard.log');
      expect(stderr, await readFile(log, 'utf8')).toContain(`port ${port} is used by another program`);
      expect((await doctor(home)).checks.find(({ id }) => id === 'port')).toMatchObject({ ok: false });
      expect(mute.listening).toBe(true);
    } finally {
      mute.close();
    }
  });
});
