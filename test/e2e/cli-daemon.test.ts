import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createHomeWithCerts, createStranger, createTestHome, freePort, type TestHome } from '../helpers/cli.ts';

interface Status {
  readonly running: boolean;
  readonly pid: number | null;
  readonly proxy: { readonly port: number };
  readonly engine: { readonly state: string; readonly pid: number | null; readonly restarts: number };
}

const RACERS = 20;

let home: TestHome;

beforeEach(async () => {
  home = await createHomeWithCerts();
});

afterEach(async () => {
  await home.close();
});

describe('one daemon', () => {
  let daemon: TestHome;
  beforeAll(async () => {
    daemon = await createHomeWithCerts();
  });
  afterAll(() => daemon.close());

  it('starts once: a second start finds the same daemon', async () => {
    const first = (await daemon.json(['start', '--json'])) as Status;
    const second = (await daemon.json(['start', '--json'])) as Status;
    expect(first.running).toBe(true);
    expect(first.engine.state).toBe('healthy');
    expect(second.pid).toBe(first.pid);
    expect(second.engine.pid).toBe(first.engine.pid);
  });

  it('has a status of the promised shape, and every file is private and without the token', async () => {
    await daemon.json(['start', '--json']);
    expect(await daemon.json(['status', '--json'])).toMatchObject({
      running: true,
      pid: expect.any(Number),
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      proxy: { url: `http://127.0.0.1:${daemon.env['COMET_CC_PORT']}`, port: Number(daemon.env['COMET_CC_PORT']) },
      engine: { state: 'healthy', pid: expect.any(Number), restarts: 0 },
      upstream: 'http://127.0.0.1:9',
      uptime_ms: expect.any(Number),
      requests: { total: 0, rewritten: 0, passed_through: 0, failed_open: 0 },
      tokens: { original: 0, sent: 0, net_saved: 0 },
      queue: { sensor: 0, compacter: 0, indexer: 0 },
      llm: { backend: 'local', calls_today: 0, tokens_today: 0, deferred: 0 },
    });
    const open = await promisify(execFile)('find', [daemon.home, '-perm', '/077', '-print']);
    expect(open.stdout).toBe('');
    const token = (await readFile(path.join(daemon.home, 'run', 'proxy-token'), 'utf8')).trim();
    expect(token).toMatch(/^[\w-]{43}$/);
    for (const name of await readdir(path.join(daemon.home, 'logs'))) {
      expect(await readFile(path.join(daemon.home, 'logs', name), 'utf8')).not.toContain(token);
    }
  });

  it('brings a killed engine back behind the same port', async () => {
    const before = (await daemon.json(['start', '--json'])) as Status;
    process.kill(before.engine.pid as number, 'SIGKILL');
    // start returns once the engine is healthy again.
    let after = (await daemon.json(['start', '--json'])) as Status;
    while (after.engine.pid === before.engine.pid) after = (await daemon.json(['start', '--json'])) as Status;
    expect(after.pid).toBe(before.pid);
    expect(after.engine).toMatchObject({ state: 'healthy', restarts: 1 });
  });

  it('moves to the port that restart is given, and says so when start is given one', async () => {
    await daemon.json(['start', '--json']);
    const port = await freePort();
    const told = await daemon.run(['start', '--port', String(port)]);
    expect(told.code).toBe(0);
    expect(told.stderr).toContain(`comet-cc restart --port ${port}`);
    const set = await daemon.run(['config', 'set', 'port', String(port)]);
    expect(set.stderr).toContain(`apply it with: comet-cc restart --port ${port}`);
    expect((await daemon.run(['config', 'set', 'library.dir', ''])).stderr).toMatch(/^library\.dir is empty in \//);
    const moved = (await daemon.json(['restart', '--port', String(port), '--json'])) as Status;
    expect(moved.proxy.port).toBe(port);
  });

  it('takes over the files of a killed daemon', async () => {
    const { pid, engine } = (await daemon.json(['start', '--json'])) as Status;
    process.kill(pid as number, 'SIGKILL');
    process.kill(engine.pid as number, 'SIGKILL');
    const next = (await daemon.json(['start', '--json'])) as Status;
    expect(next.engine.state).toBe('healthy');
    expect(next.pid).not.toBe(pid);
  });

  it('frees port and sockets on stop, and a second stop is harmless', async () => {
    await daemon.json(['start', '--json']);
    expect((await daemon.run(['stop'])).code).toBe(0);
    await expect(stat(path.join(daemon.home, 'run', 'guard.sock'))).rejects.toThrow('ENOENT');
    await expect(stat(path.join(daemon.home, 'run', 'engine.sock'))).rejects.toThrow('ENOENT');
    const stranger = await createStranger(Number(daemon.env['COMET_CC_PORT']));
    await stranger.close();
    const again = await daemon.run(['stop']);
    expect(again).toMatchObject({ code: 0, stdout: 'comet-cc is not running\n' });
  });
});

describe('start, stop, restart', () => {
  it('leaves one daemon when many starts race, and all of them succeed', async () => {
    // Each would else spend its time on keys of its own; two race for those below.
    const starts = await Promise.all(Array.from({ length: RACERS }, () => home.spawn(['start', '--json']).result));
    expect(starts.map(({ code, stderr }) => ({ code, stderr }))).toEqual(Array(RACERS).fill({ code: 0, stderr: '' }));
    const pids = starts.map(({ stdout }) => (JSON.parse(stdout) as Status).pid);
    expect(new Set(pids).size).toBe(1);
  });

  it('leaves one daemon when racing starts may pick any port', async () => {
    await home.close();
    home = await createTestHome();
    const env = { COMET_CC_PORT: '0' };
    const starts = await Promise.all([0, 1].map(() => home.spawn(['start', '--json'], { env }).result));
    expect(starts.map(({ code }) => code)).toEqual([0, 0]);
    const ports = starts.map(({ stdout }) => (JSON.parse(stdout) as Status).proxy.port);
    expect(new Set(ports).size).toBe(1);
    expect(ports[0]).toBeGreaterThan(0);
  });

  it('names a port that a stranger uses, leaves the stranger alone, and exits 1', async () => {
    const stranger = await createStranger(Number(home.env['COMET_CC_PORT']));
    try {
      const { code, stdout, stderr } = await home.run(['start']);
      expect(code).toBe(1);
      expect(stdout).toBe('');
      expect(stderr).toContain(`port ${home.env['COMET_CC_PORT']} is used by another program`);
      // Lasts over the next login, as `start --port` does not.
      const fix = /comet-cc (config set port \d+)$/m.exec(stderr)?.[1] ?? '';
      expect((await home.run(fix.split(' '))).stderr).toMatch(/^port is \d+ in /);
      const { checks } = JSON.parse((await home.run(['doctor', '--json'])).stdout) as { checks: { id: string }[] };
      expect(checks.find(({ id }) => id === 'port')).toMatchObject({
        ok: false,
        fix: 'set another one: comet-cc config set port N',
      });
      expect((await fetch(`http://127.0.0.1:${home.env['COMET_CC_PORT']}/`)).status).toBe(200);
    } finally {
      await stranger.close();
    }
  });

  it('keeps its port over a restart even where none is fixed', async () => {
    const env = { COMET_CC_PORT: '0' };
    const before = (await home.json(['start', '--json'], { env })) as Status;
    const after = (await home.json(['restart', '--json'], { env })) as Status;
    expect(after.proxy.port).toBe(before.proxy.port);
    expect(after.pid).not.toBe(before.pid);
    expect(after.engine.state).toBe('healthy');
  });

  it('stays in the foreground when asked, and ends with it', async () => {
    const running = home.spawn(['start', '--foreground']);
    await running.printed('comet-cc runs on');
    expect(((await home.json(['status', '--json'])) as Status).engine.state).toBe('healthy');
    running.child.kill('SIGTERM');
    expect((await running.result).code).toBe(0);
    expect((await home.run(['status'])).code).toBe(3);
  });

  it('refuses a control socket that is none, and touches it not', async () => {
    await mkdir(path.join(home.home, 'run'), { recursive: true, mode: 0o700 });
    const elsewhere = path.join(home.user, 'precious');
    await writeFile(elsewhere, 'precious');
    await symlink(elsewhere, path.join(home.home, 'run', 'guard.sock'));
    const { code, stderr } = await home.run(['start']);
    expect(code).toBe(1);
    expect(stderr).toContain('guard.sock is not a socket of this user');
    expect(await readFile(elsewhere, 'utf8')).toBe('precious');
    await promisify(execFile)('rm', [path.join(home.home, 'run', 'guard.sock')]);
  });

  it('says that a home is too long for a socket', async () => {
    const { code, stderr } = await home.run(['start'], {
      env: { COMET_CC_HOME: path.join(home.user, 'x'.repeat(100)) },
    });
    expect(code).toBe(1);
    expect(stderr).toContain('COMET_CC_HOME is too long for a Unix socket');
  });
});

describe('an engine that cannot start', () => {
  it('is said by start, doctor and memory, and keeps no command from running', async () => {
    const socket = path.join(home.home, 'run', 'engine.sock');
    await mkdir(path.dirname(socket), { recursive: true, mode: 0o700 });
    await writeFile(socket, '');
    const { code, stderr } = await home.run(['start']);
    expect(code).toBe(1);
    expect(stderr).toContain('Claude Code continues without memory');
    expect(stderr).toContain('comet-cc doctor');
    const { checks } = JSON.parse((await home.run(['doctor', '--json'])).stdout) as { checks: { id: string }[] };
    expect(checks.find(({ id }) => id === 'engine')).toMatchObject({
      ok: false,
      detail: expect.stringContaining('crash loop'),
    });
    expect((await home.run(['memory', 'ls'])).code).toBe(1);
    expect((await home.run(['run', 'node', '-e', 'process.exit(6)'])).code).toBe(6);
    expect((await home.run(['logs'])).stdout).toContain('engine.sock is not a socket of this user');
  });
});

describe('logs', () => {
  it('prints new lines with --follow', async () => {
    const following = home.spawn(['logs', '-f']);
    await home.json(['start', '--json']);
    await following.printed('the engine is ready');
    following.child.kill('SIGINT');
    await following.result;
  });
});

describe('status', () => {
  it('has the same shape, and exit code 3, while no daemon runs', async () => {
    await home.close();
    home = await createTestHome();
    const { code, stdout } = await home.run(['status', '--json']);
    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({
      running: false,
      pid: null,
      proxy: { port: Number(home.env['COMET_CC_PORT']) },
      engine: { state: 'stopped', pid: null, restarts: 0 },
      requests: { total: 0, rewritten: 0, passed_through: 0, failed_open: 0 },
    });
    await expect(stat(home.home)).rejects.toThrow('ENOENT');
  });
});
