import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeTestCerts } from '../helpers/certs.ts';
import { createStranger, createTestHome, type TestHome } from '../helpers/cli.ts';

const PRINT_ENV = ['node', '-e', 'console.log(JSON.stringify({ env: process.env, argv: process.argv.slice(1) }))'];

interface Seen {
  readonly env: Readonly<Record<string, string>>;
  readonly argv: readonly string[];
}

describe('run', () => {
  let home: TestHome;

  beforeAll(async () => {
    home = await createTestHome();
  });

  afterAll(async () => {
    await home.close();
  });

  const seen = async (args: readonly string[], env: Record<string, string> = {}): Promise<Seen> => {
    const { code, stdout, stderr } = await home.run(['run', ...args], { env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout) as Seen;
  };

  it('starts the daemon and gives the command what it needs to go through it', async () => {
    const { env } = await seen(['--', ...PRINT_ENV, 'a', '--', '--json']);
    expect(env['HTTPS_PROXY']).toMatch(
      new RegExp(`^http://comet-cc:[\\w-]{43}@127\\.0\\.0\\.1:${home.env['COMET_CC_PORT']}$`),
    );
    expect(env['https_proxy']).toBeUndefined();
    expect(env['CLAUDE_CODE_GATEWAY_HINT_HEADERS']).toBe('1');
    expect(await readFile(env['NODE_EXTRA_CA_CERTS'] as string, 'utf8')).toContain('BEGIN CERTIFICATE');
    expect(await home.json(['status', '--json'])).toMatchObject({ running: true, engine: { state: 'healthy' } });
  });

  it('passes arguments on as they are, options and a later -- included', async () => {
    const { argv } = await seen([...PRINT_ENV, '--', '--json', '-p', 'two words', '--', '--help']);
    expect(argv).toEqual(['--json', '-p', 'two words', '--', '--help']);
  });

  it('replaces a lower-case proxy variable, which would win over ours', async () => {
    const given = { https_proxy: 'http://proxy.example:3128' };
    const { stdout, stderr } = await home.run(['run', ...PRINT_ENV], { env: given });
    const { env } = JSON.parse(stdout) as Seen;
    expect(env['https_proxy']).toBe(env['HTTPS_PROXY']);
    // The daemon was started by a shell without one.
    const says = 'the daemon still uses no proxy, not http://proxy.example:3128; comet-cc restart changes that';
    expect(stderr).toBe(`comet-cc: ${says}\n`);
    const { checks } = JSON.parse((await home.run(['doctor', '--json'], { env: given })).stdout);
    expect(checks.find(({ id }: { id: string }) => id === 'upstream')).toMatchObject({ ok: false, detail: says });
    expect((await home.run(['status'], { env: given })).stdout).toContain(`problem: ${says}`);
  });

  it.each([0, 7, 255])('ends with the exit code %i of the command', async (code) => {
    expect((await home.run(['run', 'node', '-e', `process.exit(${code})`])).code).toBe(code);
  });

  it('ends with 128 + n when signal n ended the command', async () => {
    expect((await home.run(['run', 'sh', '-c', 'kill -KILL $$'])).code).toBe(137);
  });

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('passes %s on', async (signal) => {
    const script = `process.on('${signal}', () => { console.log('got it'); process.exit(3); }); setInterval(() => {}, 1000); console.log('ready')`;
    const running = home.spawn(['run', 'node', '-e', script]);
    await running.printed('ready');
    running.child.kill(signal);
    const { code, stdout } = await running.result;
    expect({ code, stdout }).toEqual({ code: 3, stdout: 'ready\ngot it\n' });
  });

  it('lets a command that takes its time to end at SIGTERM do so', async () => {
    const script = `let times = 0; process.on('SIGTERM', () => { console.log('got it'); if (++times === 2) process.exit(3); }); setInterval(() => {}, 1000); console.log('ready')`;
    // Five seconds are over at once.
    const clock = `import { syncBuiltinESMExports } from 'node:module'; import timers from 'node:timers/promises';
      const wait = timers.setTimeout; timers.setTimeout = (ms, ...rest) => wait(ms === 5000 ? 0 : ms, ...rest); syncBuiltinESMExports();`;
    const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(clock)}` };
    const running = home.spawn(['run', 'node', '-e', script], { env });
    await running.printed('ready');
    running.child.kill('SIGTERM');
    await Promise.race([running.printed('got it'), running.result]);
    running.child.kill('SIGTERM');
    expect((await running.result).code).toBe(3);
  });

  it('gives stdin to the command', async () => {
    const { stdout } = await home.run(['run', 'cat'], { stdin: 'from stdin' });
    expect(stdout).toBe('from stdin');
  });

  it('says 127 for a command that does not exist', async () => {
    const { code, stderr } = await home.run(['run', 'no-such-command-here']);
    expect(code).toBe(127);
    expect(stderr).toContain('no-such-command-here was not found');
  });

  it('leaves the arguments of claude alone unless its settings name another proxy', async () => {
    const claude = path.join(home.user, 'claude');
    await writeFile(
      claude,
      '#!/usr/bin/env node\nconsole.log(JSON.stringify({ env: process.env, argv: process.argv.slice(2) }))\n',
    );
    await chmod(claude, 0o755);
    expect((await seen([claude, '-p', 'hello'])).argv).toEqual(['-p', 'hello']);
    const gateway = { ANTHROPIC_BASE_URL: 'https://gateway.example' };
    expect((await home.run(['run', claude, '-p', 'hello'], { env: gateway })).stderr).toBe(
      'comet-cc: ANTHROPIC_BASE_URL leads Claude Code past api.anthropic.com, so nothing is remembered; ' +
        'unset it, and name a gateway in COMET_CC_UPSTREAM instead\n',
    );

    await mkdir(path.join(home.user, '.claude'));
    await writeFile(
      path.join(home.user, '.claude', 'settings.json'),
      JSON.stringify({ env: { HTTPS_PROXY: 'http://proxy.example:3128' } }),
    );
    const run = await home.run(['run', claude, '-p', 'hello']);
    const { argv, env } = JSON.parse(run.stdout) as Seen;
    expect(argv).toEqual(['--settings', expect.stringContaining('claude-settings.json'), '-p', 'hello']);
    const settings = JSON.parse(await readFile(argv[1] as string, 'utf8')) as { env: Record<string, string> };
    expect(settings.env['HTTPS_PROXY']).toBe(env['HTTPS_PROXY']);
    expect(argv.join(' ')).not.toContain(new URL(env['HTTPS_PROXY'] as string).password);

    // The daemon was started before the settings named one.
    const says = 'the daemon still uses no proxy, not http://proxy.example:3128; comet-cc restart changes that';
    expect(run.stderr).toBe(`comet-cc: ${says}\n`);
    expect((await home.run(['doctor'])).stdout).toContain(says);
    expect((await home.run(['status'])).stdout).toContain(`problem: ${says}`);

    // Claude Code takes one --settings, so a CA of the settings would win, and nothing would be reached.
    const certs = makeTestCerts(['proxy.example']);
    const ca = path.join(home.user, 'corp.pem');
    await rename(certs.caFile, ca);
    await rm(certs.dir, { recursive: true });
    const own = JSON.stringify({ env: { NODE_EXTRA_CA_CERTS: ca } });
    await writeFile(path.join(home.user, '.claude', 'settings.json'), own);
    const { stdout, stderr } = await home.run(['run', claude, '--settings', 'x']);
    expect(JSON.parse(stdout)).toMatchObject({ argv: ['--settings', 'x'] });
    expect(stdout).not.toContain('HTTPS_PROXY');
    expect(stderr).toContain('running');
    expect(stderr).toContain('without memory');
    // What the settings name is in the bundle that takes its place.
    const bundle = await readFile(path.join(home.home, 'certs', 'bundle.pem'), 'utf8');
    expect(bundle).toContain((await readFile(ca, 'utf8')).trim());
  });

  it('starts a daemon that was killed whole again on the same port while the command runs', async () => {
    const running = home.spawn(['run', 'node', '-e', 'console.log("ready"); setInterval(() => {}, 1000)']);
    await running.printed('ready');
    const before = (await home.json(['status', '--json'])) as {
      pid: number;
      engine: { pid: number };
      proxy: { port: number };
    };
    const given = new URL((await seen(PRINT_ENV)).env['HTTPS_PROXY'] as string);
    // Without its engine, which would start another guard.
    process.kill(before.engine.pid, 'SIGKILL');
    process.kill(before.pid, 'SIGKILL');
    const again = async (): Promise<{ pid: number; proxy: { port: number } }> => {
      const { code, stdout } = await home.run(['status', '--json']);
      return code === 0 ? JSON.parse(stdout) : await again();
    };
    const after = await again();
    expect(after.pid).not.toBe(before.pid);
    expect(after.proxy.port).toBe(before.proxy.port);
    // What a client was given before still opens the door.
    const { port, username, password } = given;
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    const asked = { port, path: '/.comet-cc/nonce', headers: { 'proxy-authorization': authorization } };
    const status = new Promise((resolve) => http.get(asked, (answer) => resolve(answer.resume().statusCode)));
    expect(await status).toBe(200);
    running.child.kill('SIGTERM');
    await running.result;
  });
});

describe('run without a daemon', () => {
  it('says in one line that it cannot start and runs the command as if comet-cc were not there', async () => {
    const home = await createTestHome();
    const stranger = await createStranger(Number(home.env['COMET_CC_PORT']));
    try {
      const { code, stdout, stderr } = await home.run(['run', ...PRINT_ENV]);
      expect(code).toBe(0);
      const { env } = JSON.parse(stdout) as Seen;
      expect(env['HTTPS_PROXY']).toBeUndefined();
      expect(env['NODE_EXTRA_CA_CERTS']).toBeUndefined();
      expect(stderr.trim().split('\n')).toHaveLength(1);
      expect(stderr).toContain('is used by another program');
      expect(stderr).toContain('running node without memory');
    } finally {
      await stranger.close();
      await home.close();
    }
  });

  it('does so for a configuration that does not validate, which it names', async () => {
    const home = await createTestHome();
    try {
      await mkdir(home.home, { mode: 0o700 });
      await writeFile(path.join(home.home, 'config.json'), JSON.stringify({ trim: { mode: 'always' } }));
      const { code, stderr } = await home.run(['run', 'node', '-e', 'process.exit(5)']);
      expect(code).toBe(5);
      expect(stderr).toContain('config.json');
      expect(stderr).toContain('trim.mode');
    } finally {
      await home.close();
    }
  });
});
