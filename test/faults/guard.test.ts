import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { expect, it } from 'vitest';
import { createTestHome } from '../helpers/cli.ts';
import { busyness } from '../helpers/cpu-load.ts';
import { startFaultRig } from '../helpers/fault-rig.ts';
import { control } from '../helpers/guard-rig.ts';
import { createLiveRig, longTalk, openTerminal } from '../helpers/live-rig.ts';
import { ANSWERS, stubClaude } from '../helpers/stub-claude.ts';

it('stop kills no process that reuses the recorded process id', async () => {
  const home = await createTestHome();
  const socket = path.join(home.home, 'run', 'guard.sock');
  await home.json(['start', '--json']);
  const status = await control(socket, '{"op":"status"}');
  await home.run(['stop', '--now']);
  // A program that was given the id of a guard of long ago.
  const bystander = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  const told = { ...status, pid: bystander.pid, engine: { state: 'healthy', pid: bystander.pid, restarts: 0 } };
  const left = net.createServer((client) => {
    client.on('error', () => {});
    client.once('data', (line) => {
      const isStop = line.toString().includes('"stop"');
      client.end(`${JSON.stringify(isStop ? { ok: true } : told)}\n`);
      if (isStop) left.close();
    });
  });
  await mkdir(path.dirname(socket), { recursive: true, mode: 0o700 });
  left.listen(socket);
  await once(left, 'listening');
  try {
    expect((await home.run(['stop', '--now'])).code).toBe(0);
    expect({ code: bystander.exitCode, signal: bystander.signalCode }).toEqual({ code: null, signal: null });
    expect(((await home.json(['start', '--json'])) as { pid: number }).pid).not.toBe(bystander.pid);
    expect({ code: bystander.exitCode, signal: bystander.signalCode }).toEqual({ code: null, signal: null });
  } finally {
    bystander.kill('SIGKILL');
    await home.close();
  }
});

it('a killed guard is back on its port within 2 s', async () => {
  const rig = await startFaultRig();
  const socket = path.join(rig.home.home, 'run', 'guard.sock');
  const answered = (): Promise<boolean> =>
    rig.either('{"new":1}').then(
      ({ status }) => status === 200,
      () => false,
    );
  try {
    const before = await rig.status();
    const stream = await rig.stream();
    process.kill(before.pid, 'SIGKILL');
    const startedAt = performance.now();
    await expect.poll(answered, { interval: 10 }).toBe(true);
    expect(performance.now() - startedAt).toBeLessThan(2_000 * busyness());
    await expect(stream.whole).rejects.toThrow();
    const after = await rig.statusUntil(({ engine }) => engine.state === 'healthy');
    expect(after.pid).not.toBe(before.pid);
    expect((await rig.intercepted('{"again":1}')).status).toBe(200);
    const { checks } = JSON.parse((await rig.home.run(['doctor', '--json'])).stdout) as { checks: { id: string }[] };
    expect(checks.find(({ id }) => id === 'port')).toMatchObject({ ok: true });

    // One that was stopped stays down.
    await rig.home.run(['stop', '--now']);
    expect(existsSync(socket)).toBe(false);
    expect((await rig.home.run(['status'])).code).toBe(3);
  } finally {
    await rig.close();
  }
});

it('sessions continue through a plain tunnel after a stop, and start takes over from it', async () => {
  const rig = await startFaultRig();
  const stopped = async () => JSON.parse((await rig.home.run(['status', '--json'])).stdout) as object;
  try {
    const { pid } = await rig.status();
    const session = rig.home.spawn(['run', 'node', '-e', 'console.log("ready"); setInterval(() => {}, 1000)']);
    await session.printed('ready');
    const stop = await rig.home.run(['stop']);
    expect(stop).toMatchObject({ code: 0, stdout: expect.stringContaining('memory is off; 1 session') });
    expect((await rig.tunnelled('{"off":1}')).body.toString()).toBe('{"off":1}');
    const port = rig.via.port;
    expect(await stopped()).toMatchObject({ running: false, proxy: { port }, pass_through: { sessions: 1 } });
    expect((await rig.home.run(['status'])).code).toBe(3);

    const env = { COMET_CC_LLM: 'off' };
    const started = (await rig.home.json(['start', '--json'], { env })) as { pid: number; llm: { backend: string } };
    expect(started).toMatchObject({ pid, proxy: { port }, engine: { state: 'healthy' }, llm: { backend: 'off' } });
    expect((await rig.intercepted('{"on":1}')).body.toString()).toBe('{"on":1}');

    await rig.home.run(['stop']);
    session.child.kill('SIGTERM');
    await session.result;
    await expect.poll(stopped).toMatchObject({ pass_through: { sessions: 0 } });
    await rig.home.run(['stop', '--now']);
    expect(await stopped()).toMatchObject({ running: false, pass_through: null });
  } finally {
    await rig.close();
  }
});

it('a second SIGTERM ends a draining daemon at once, and its store opens again', async () => {
  const rig = await startFaultRig();
  try {
    const { pid } = await rig.status();
    const socket = path.join(rig.home.home, 'run', 'guard.sock');
    const stream = await rig.stream();
    process.kill(pid, 'SIGTERM');
    const engineState = async (): Promise<string> => {
      const { engine } = (await control(socket, '{"op":"status"}')) as { engine: { state: string } };
      return engine.state;
    };
    await expect.poll(engineState).toBe('stopped');
    const startedAt = performance.now();
    process.kill(pid, 'SIGTERM');
    await expect.poll(() => existsSync(socket), { interval: 10 }).toBe(false);
    expect(performance.now() - startedAt).toBeLessThan(1_000 * busyness());
    await expect(stream.whole).rejects.toThrow();
    await rig.home.json(['start', '--json']);
    // The store may still be opening when the daemon is there.
    expect((await rig.statusUntil(({ problems }) => !isOpening(problems))).problems).toEqual([]);
    expect((await rig.intercepted('{"again":1}')).body.toString()).toBe('{"again":1}');
    expect((await rig.home.run(['memory', 'ls'])).code).toBe(0);
  } finally {
    await rig.close();
  }
});

it.runIf(process.platform === 'linux')('no child of the guard inherits its listening socket', async () => {
  const stub = stubClaude(`
const links = fs.readdirSync('/proc/self/fd').map((fd) => { try { return fs.readlinkSync('/proc/self/fd/' + fd); } catch { return ''; } });
fs.writeFileSync(__dirname + '/fds.json', JSON.stringify(links));
${ANSWERS}`);
  const rig = await createLiveRig({ COMET_CC_LLM: 'claude', COMET_CC_CLAUDE_BIN: stub.bin });
  try {
    await longTalk(rig, openTerminal(rig), { topic: 'service', turns: 4 });
    await rig.flush();
    const { pid, engine } = await rig.status();
    const listening = (of: number): string[] => socketsOf(of).filter((link) => listeners().has(link));
    const [ofGuard, ofEngine] = [listening(pid), listening(engine.pid)];
    expect(ofGuard).toHaveLength(1);
    expect(ofEngine).toHaveLength(1);
    expect(ofEngine).not.toEqual(ofGuard);
    const ofChild = JSON.parse(readFileSync(path.join(stub.dir, 'fds.json'), 'utf8')) as string[];
    expect(ofChild.length).toBeGreaterThan(2);
    expect(ofChild.filter((link) => [...ofGuard, ...ofEngine].includes(link))).toEqual([]);
  } finally {
    await rig.close();
    stub.dispose();
  }
});

it('a second engine on the same home is refused, and the first continues', async () => {
  const rig = await startFaultRig();
  try {
    const second = fork(path.resolve('dist/bin/engine.js'), [], {
      env: rig.home.env,
      execArgv: [],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    let said = '';
    second.stderr?.on('data', (bytes: Buffer) => {
      said += bytes.toString();
    });
    second.send({ type: 'init', secret: 'a secret of the test' });
    const [code] = (await once(second, 'exit')) as [number];
    expect(code).toBe(1);
    expect(said).toContain('another engine');
    expect((await rig.intercepted('{"first":1}')).body.toString()).toBe('{"first":1}');
    expect((await rig.status()).engine).toMatchObject({ state: 'healthy', restarts: 0 });
  } finally {
    await rig.close();
  }
});

function isOpening(problems: readonly { readonly message: string }[]): boolean {
  return problems.some(({ message }) => message.includes('still opening'));
}

function socketsOf(pid: number): string[] {
  const dir = `/proc/${pid}/fd`;
  return readdirSync(dir)
    .map((fd) => readlinkSync(path.join(dir, fd)))
    .filter((link) => link.startsWith('socket:'));
}

/** Sockets that listen on TCP, as the links in /proc name them. */
function listeners(): Set<string> {
  const rows = ['tcp', 'tcp6'].flatMap((name) => readFileSync(`/proc/net/${name}`, 'utf8').split('\n').slice(1));
  const fields = rows.map((line) => line.trim().split(/\s+/));
  return new Set(fields.filter(([, , , state]) => state === '0A').map((each) => `socket:[${each[9]}]`));
}
