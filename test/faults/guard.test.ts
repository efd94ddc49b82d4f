import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { busyness, startBusyness } from '../helpers/cpu-load.ts';
import { type FaultRig, startFaultRig } from '../helpers/fault-rig.ts';
import { control } from '../helpers/guard-rig.ts';
import { createLiveRig, type LiveRig, longTalk, openTerminal } from '../helpers/live-rig.ts';
import { ANSWERS, type StubClaude, stubClaude } from '../helpers/stub-claude.ts';

const guardSocket = (rig: FaultRig): string => path.join(rig.home.home, 'run', 'guard.sock');

/** Groups run beside each other, the tests of a group one after the other on one daemon. */
function group(name: string, tests: (rig: () => FaultRig) => void): void {
  describe.concurrent(name, () => {
    let rig: FaultRig;
    beforeAll(async () => {
      rig = await startFaultRig();
    });
    afterAll(() => rig.close());
    tests(() => rig);
  });
}

group('a daemon that is stopped', (rig) => {
  it.sequential('a second SIGTERM ends a draining daemon at once, and its store opens again', async ({ expect }) => {
    const { home } = rig();
    const { pid } = await rig().status();
    const socket = guardSocket(rig());
    const stream = await rig().stream();
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
    await home.json(['start', '--json']);
    // The store may still be opening when the daemon is there.
    expect((await rig().statusUntil(({ problems }) => !isOpening(problems))).problems).toEqual([]);
    expect((await rig().intercepted('{"again":1}')).body.toString()).toBe('{"again":1}');
    expect((await home.run(['memory', 'ls'])).code).toBe(0);
  });

  it.sequential('stop kills no process that reuses the recorded process id', async () => {
    const { home } = rig();
    const socket = guardSocket(rig());
    const status = await control(socket, '{"op":"status"}');
    await home.run(['stop', '--now']);
    // A program that was given the id of an earlier guard.
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
    const lives = () => ({ code: bystander.exitCode, signal: bystander.signalCode });
    try {
      expect((await home.run(['stop', '--now'])).code).toBe(0);
      expect(lives()).toEqual({ code: null, signal: null });
      expect(((await home.json(['start', '--json'])) as { pid: number }).pid).not.toBe(bystander.pid);
      expect(lives()).toEqual({ code: null, signal: null });
    } finally {
      bystander.kill('SIGKILL');
    }
  });
});

group('a guard', (rig) => {
  it.sequential('sessions continue through a plain tunnel after a stop, and start takes over from it', async ({
    expect,
  }) => {
    const { home } = rig();
    const stopped = async () => JSON.parse((await home.run(['status', '--json'])).stdout) as object;
    const { pid } = await rig().status();
    const session = home.spawn(['run', 'node', '-e', 'console.log("ready"); setInterval(() => {}, 1000)']);
    await session.printed('ready');
    const stop = await home.run(['stop']);
    expect(stop).toMatchObject({ code: 0, stdout: expect.stringContaining('memory is off; 1 session') });
    expect((await rig().tunnelled('{"off":1}')).body.toString()).toBe('{"off":1}');
    const port = rig().via.port;
    expect(await stopped()).toMatchObject({ running: false, proxy: { port }, pass_through: { sessions: 1 } });
    expect((await home.run(['status'])).code).toBe(3);
    expect((await home.run(['memory', 'ls'])).stderr).toContain('memory is off; comet-cc start brings it back');

    const env = { COMET_CC_LLM: 'off' };
    const started = (await home.json(['start', '--json'], { env })) as { pid: number; llm: { backend: string } };
    expect(started).toMatchObject({ pid, proxy: { port }, engine: { state: 'healthy' }, llm: { backend: 'off' } });
    expect((await rig().intercepted('{"on":1}')).body.toString()).toBe('{"on":1}');

    await home.run(['stop']);
    session.child.kill('SIGTERM');
    await session.result;
    await expect.poll(stopped).toMatchObject({ pass_through: { sessions: 0 } });
    await home.run(['stop', '--now']);
    expect(await stopped()).toMatchObject({ running: false, pass_through: null });
  });

  it.sequential('a killed guard is back on its port within 2 s', async ({ expect }) => {
    const { home } = rig();
    await home.json(['start', '--json']);
    const answered = (): Promise<boolean> =>
      rig()
        .either('{"new":1}')
        .then(
          ({ status }) => status === 200,
          () => false,
        );
    const before = await rig().status();
    const stream = await rig().stream();
    const busy = startBusyness();
    process.kill(before.pid, 'SIGKILL');
    const startedAt = performance.now();
    await expect.poll(answered, { interval: 10 }).toBe(true);
    expect(performance.now() - startedAt).toBeLessThan(2_000 * busy());
    await expect(stream.whole).rejects.toThrow();
    await expect
      .poll(() =>
        rig()
          .status()
          .catch(() => null),
      )
      .toMatchObject({ engine: { state: 'healthy' } });
    expect((await rig().status()).pid).not.toBe(before.pid);
    expect((await rig().intercepted('{"again":1}')).status).toBe(200);
    const { checks } = JSON.parse((await home.run(['doctor', '--json'])).stdout) as { checks: { id: string }[] };
    expect(checks.find(({ id }) => id === 'port')).toMatchObject({ ok: true });

    // One that was stopped stays down.
    expect(await home.run(['stop', '--now'])).toMatchObject({ code: 0 });
    expect(existsSync(guardSocket(rig()))).toBe(false);
    expect((await home.run(['status'])).code).toBe(3);
  });
});

describe.concurrent('processes of a daemon', () => {
  let stub: StubClaude;
  let rig: LiveRig;

  beforeAll(async () => {
    stub = stubClaude(`
const links = fs.readdirSync('/proc/self/fd').map((fd) => { try { return fs.readlinkSync('/proc/self/fd/' + fd); } catch { return ''; } });
fs.writeFileSync(__dirname + '/fds.json', JSON.stringify(links));
${ANSWERS}`);
    rig = await createLiveRig({ COMET_CC_LLM: 'claude', COMET_CC_CLAUDE_BIN: stub.bin });
  });

  afterAll(async () => {
    await rig.close();
    stub.dispose();
  });

  it.runIf(process.platform === 'linux').sequential('no child of the guard inherits its listening socket', async () => {
    await longTalk(rig, openTerminal(rig), { topic: 'service', turns: 4 });
    await rig.flush();
    const { pid, engine } = await rig.status();
    const listening = (of: number): string[] => getSockets(of).filter((link) => listeners().has(link));
    const [ofGuard, ofEngine] = [listening(pid), listening(engine.pid)];
    expect(ofGuard).toHaveLength(1);
    expect(ofEngine).toHaveLength(1);
    expect(ofEngine).not.toEqual(ofGuard);
    const ofChild = JSON.parse(readFileSync(path.join(stub.dir, 'fds.json'), 'utf8')) as string[];
    expect(ofChild.length).toBeGreaterThan(2);
    expect(ofChild.filter((link) => [...ofGuard, ...ofEngine].includes(link))).toEqual([]);
  });

  it.runIf(process.platform === 'linux').sequential('no port of the daemon answers a web page', async () => {
    const { pid, engine } = await rig.status();
    const ports = [pid, engine.pid].flatMap((of) => getSockets(of).flatMap((link) => listeners().get(link) ?? []));
    expect(ports).toContain(rig.via.port);
    expect(ports).toHaveLength(2);
    const served = rig.standin.requests.length;
    for (const port of ports) {
      for (const headers of WEB_PAGES) {
        const reply = await fetchAs(port, headers);
        expect([400, 403, 404, 405, 407, 421], `${reply} for ${JSON.stringify(headers)}`).toContain(reply);
      }
    }
    expect(rig.standin.requests).toHaveLength(served);
    expect((await rig.status()).nodes).toBeGreaterThan(0);
  });

  it.sequential('a second engine on the same home is refused, and the first continues', async () => {
    const { engine } = await rig.status();
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
    await openTerminal(rig).say('the first session continues');
    expect((await rig.status()).engine).toEqual(engine);
    expect(rig.standin.refused).toEqual([]);
  });
});

/** Headers of requests that a page can make a browser send: by another name, of another origin, without preflight. */
const WEB_PAGES: readonly http.OutgoingHttpHeaders[] = [
  { host: 'evil.example' },
  { host: 'api.anthropic.com', origin: 'https://evil.example' },
  { origin: 'null', 'content-type': 'text/plain' },
  {
    origin: 'https://evil.example',
    'sec-fetch-site': 'cross-site',
    'content-type': 'application/x-www-form-urlencoded',
  },
];

/** The status of an answer to a request that forgets all memory where the API hears it. */
function fetchAs(port: number, headers: http.OutgoingHttpHeaders): Promise<number> {
  return new Promise((resolve, reject) => {
    const path = '/v1/nodes/forget';
    const request = http.request(
      { host: '127.0.0.1', port, path, method: 'POST', headers, agent: false },
      (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      },
    );
    request.once('error', reject).end('{"dryRun":false,"sinceMs":0}');
  });
}

function isOpening(problems: readonly { readonly message: string }[]): boolean {
  return problems.some(({ message }) => message.includes('still opening'));
}

function getSockets(pid: number): string[] {
  const dir = `/proc/${pid}/fd`;
  return readdirSync(dir)
    .flatMap((fd) => readLink(path.join(dir, fd)) ?? [])
    .filter((link) => link.startsWith('socket:'));
}

/** Nothing for a file that the process closed since its folder was listed. */
function readLink(file: string): string | undefined {
  try {
    return readlinkSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Sockets that listen on TCP, as the links in /proc name them, with their ports. */
function listeners(): Map<string, number> {
  const rows = ['tcp', 'tcp6'].flatMap((name) => readFileSync(`/proc/net/${name}`, 'utf8').split('\n').slice(1));
  const listening = rows.map((line) => line.trim().split(/\s+/)).filter(([, , , state]) => state === '0A');
  return new Map(listening.map((each) => [`socket:[${each[9]}]`, Number.parseInt(each[1]?.split(':')[1] ?? '', 16)]));
}
