import { once } from 'node:events';
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createRoute, Guard } from '../../../proxy/guard/index.ts';
import { startConnectProxy } from '../../helpers/connect-proxy.ts';
import { AUTH, control, engineScript, makeWorld, type World } from '../../helpers/guard-rig.ts';
import { connectThrough } from '../../helpers/tls-client.ts';

let world: World;
const quick = { enginePath: engineScript('never-ready'), timings: { holdMs: 100, startMs: 0 } };

beforeAll(async () => {
  world = await makeWorld((_request, response) => void response.end());
});
afterEach(() => world.stopAll());
afterAll(() => world.close());

async function echoServer(host: string): Promise<{ port: number; close(): void }> {
  const server = net.createServer({ allowHalfOpen: true }, (socket) => socket.on('error', () => {}).pipe(socket));
  server.listen(0, host);
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

const PROBE = '02';

/** What the kernel waits for on the connections to a port of 127.0.0.1; see proc_net_tcp in its documentation. */
function timersTo(port: number): string[] {
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n');
  return lines.flatMap((line) => {
    const [, , to, , , timer = ''] = line.trim().split(/\s+/);
    return to === remote ? timer.slice(0, 2) : [];
  });
}

async function answerTo(port: number, bytes: string): Promise<string> {
  const socket = net.connect(port, '127.0.0.1');
  socket.on('error', () => {});
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  socket.write(bytes);
  await once(socket, 'close');
  return text;
}

describe('the front door', () => {
  it.each([
    ['no token', ''],
    ['a wrong token', `Proxy-Authorization: Basic ${Buffer.from('comet-cc:nope').toString('base64')}\r\n`],
    ['another scheme', 'Proxy-Authorization: Bearer x\r\n'],
  ])('rejects %s', async (_name, connectHeaders) => {
    const { via } = await world.start(quick);
    const { status, socket } = await connectThrough({ ...via, connectHeaders });
    expect(status).toBe(407);
    socket.destroy();
  });

  it.each([
    '../../x:443',
    'host:0',
    'host:99999',
    'host',
    'a b:443',
    'http://x:443',
    '[::1',
    'x:443/',
    '%00:1',
    'a\r\nHost: b:443',
  ])('answers 400 to CONNECT %s and writes no file', async (authority) => {
    const { via } = await world.start(quick);
    const before = readdirSync(world.home, { recursive: true }).length;
    const { status, socket } = await connectThrough({ ...via, authority });
    expect(status).toBe(400);
    expect(readdirSync(world.home, { recursive: true }).length).toBe(before);
    socket.destroy();
  });

  it('tunnels bytes both ways over IPv4 and IPv6, with half-closed connections', async () => {
    const { guard, via } = await world.start(quick);
    for (const host of ['127.0.0.1', '::1']) {
      const echo = await echoServer(host);
      const authority = host === '::1' ? `[::1]:${echo.port}` : `${host}:${echo.port}`;
      const { status, socket } = await connectThrough({ ...via, authority });
      expect(status).toBe(200);
      const chunks: Buffer[] = [];
      socket.on('data', (chunk: Buffer) => chunks.push(chunk));
      socket.resume().end(Buffer.alloc(3_000_000, 7));
      await once(socket, 'end');
      expect(Buffer.concat(chunks).length).toBe(3_000_000);
      echo.close();
    }
    await expect.poll(() => guard.status().tunnels.open).toBe(0);
  });

  // A network that is lost closes nothing, and the client's own probes end at the guard.
  it.runIf(process.platform === 'linux')('lets the kernel probe the other side of a silent tunnel', async () => {
    const echo = await echoServer('127.0.0.1');
    const proxy = await startConnectProxy();
    for (const [url, port] of [['', echo.port] as const, [proxy.url, proxy.port] as const]) {
      const { via } = await world.start({ ...quick, route: createRoute(url, '') });
      const { status, socket } = await connectThrough({ ...via, authority: `127.0.0.1:${echo.port}` });
      expect(status).toBe(200);
      await expect.poll(() => timersTo(port)).toEqual([PROBE]);
      socket.destroy();
      await world.stopAll();
    }
    proxy.close();
    echo.close();
  });

  it('forwards bytes that came along with a CONNECT of 60 KB', async () => {
    const { via } = await world.start(quick);
    const echo = await echoServer('127.0.0.1');
    const socket = net.connect(via.port, '127.0.0.1');
    socket.end(`CONNECT 127.0.0.1:${echo.port} HTTP/1.1\r\nX: ${'x'.repeat(60_000)}\r\n${AUTH}\r\nearly bird`);
    let text = '';
    for await (const chunk of socket) text += chunk;
    expect(text).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\nearly bird$/);
    echo.close();
  });

  it('refuses to connect to itself under any name', async () => {
    const { via, guard } = await world.start(quick);
    for (const host of ['127.0.0.1', 'localhost', '127.9.9.9', '[::ffff:127.0.0.1]']) {
      const { status, socket } = await connectThrough({ ...via, authority: `${host}:${via.port}` });
      // What this machine does not route to itself cannot loop either.
      expect([403, 502]).toContain(status);
      if (host === '127.0.0.1') expect(status).toBe(403);
      socket.destroy();
    }
    expect(guard.status().tunnels.total).toBe(0);
  });

  it.each(['constructor:443', '__proto__:443', 'toString:443'])('survives CONNECT %s', async (authority) => {
    const { via } = await world.start({ ...quick, target: { host: 'localhost', port: 1 } });
    // Names resolve nowhere here: the tests may not look up foreign hosts.
    const { status, socket } = await connectThrough({ ...via, authority });
    expect(status).toBe(502);
    socket.destroy();
    expect((await control(world.socketPath, '{"op":"status"}'))['port']).toBe(via.port);
  });

  it('answers 502 when nothing listens', async () => {
    const { via } = await world.start(quick);
    const echo = await echoServer('127.0.0.1');
    echo.close();
    const { status, socket } = await connectThrough({ ...via, authority: `127.0.0.1:${echo.port}` });
    expect(status).toBe(502);
    socket.destroy();
  });

  it('closes clients that send garbage, too much, or nothing', async () => {
    const { via } = await world.start({ ...quick, timings: { headMs: 1_000 } });
    expect(await answerTo(via.port, '\x16\x03\x01garbage\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /);
    expect(await answerTo(via.port, `CONNECT a:1 HTTP/1.1\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 4/,
    );
    expect(await answerTo(via.port, 'CONNECT a:1 HT')).toMatch(/^HTTP\/1\.1 408 /);
    expect(await answerTo(via.port, '')).toMatch(/^(HTTP\/1\.1 408 |$)/);
  });

  it('tells its nonce to the token, and is no plain proxy', async () => {
    const { via, guard } = await world.start(quick);
    const get = (line: string, headers: string): Promise<string> =>
      answerTo(via.port, `${line} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
    expect(await get('GET /.comet-cc/nonce', AUTH)).toMatch(
      new RegExp(`^HTTP/1\\.1 200 [\\s\\S]*${guard.status().nonce}$`),
    );
    expect(await get('GET /.comet-cc/nonce', '')).toMatch(/^HTTP\/1\.1 407 /);
    expect(await get('POST /.comet-cc/nonce', AUTH)).toMatch(/^HTTP\/1\.1 405 /);
    expect(await get('GET http://example.com/', AUTH)).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('survives a storm of cut connections among hundreds of idle tunnels, and leaks none', async () => {
    const { via, guard } = await world.start(quick);
    const echo = await echoServer('127.0.0.1');
    const authority = `127.0.0.1:${echo.port}`;
    const idle = await Promise.all(Array.from({ length: 300 }, () => connectThrough({ ...via, authority })));
    expect(idle.every(({ status }) => status === 200)).toBe(true);
    await Promise.all(
      Array.from({ length: 900 }, async (_, i) => {
        const socket = net.connect(via.port, '127.0.0.1');
        socket.on('error', () => {});
        await once(socket, 'connect');
        if (i % 3 > 0) socket.write(`CONNECT ${authority} HTTP/1.1\r\n${AUTH}\r\n`);
        if (i % 3 > 1) socket.write('more');
        socket.resetAndDestroy();
      }),
    );
    const fresh = await connectThrough({ ...via, authority });
    expect(fresh.status).toBe(200);
    fresh.socket.destroy();
    for (const { socket } of idle) socket.destroy();
    await expect.poll(() => guard.status().tunnels.open).toBe(0);
    echo.close();
  });
});

describe('the control socket', () => {
  it('is private, answers status, and shrugs off nonsense', async () => {
    const { guard } = await world.start(quick);
    expect(lstatSync(world.socketPath).mode & 0o777).toBe(0o600);
    expect(lstatSync(path.dirname(world.socketPath)).mode & 0o777).toBe(0o700);
    expect(await control(world.socketPath, '{"op":"status"}')).toMatchObject({
      nonce: guard.status().nonce,
      pid: process.pid,
      version: '0.0.0',
      upstream: world.standIn.origin,
      target: 'api.anthropic.com:443',
      engine: { state: 'starting', restarts: 0 },
      tunnels: { open: 0, total: 0, failed_open: 0, bypassing: 0 },
    });
    for (const line of ['nonsense', '{}', 'null', '[]', '{"op":"constructor"}']) {
      expect(await control(world.socketPath, line)).toHaveProperty('error');
    }
    expect(await control(world.socketPath, '{"op":"wait_healthy","timeout_ms":20}')).toMatchObject({
      engine: { state: 'starting' },
    });
  });

  it('replaces a stale socket, and is gone after a stop', async () => {
    mkdirSync(path.dirname(world.socketPath), { recursive: true });
    const dead = net.createServer().listen(`${world.socketPath}.dead`);
    await once(dead, 'listening');
    renameSync(`${world.socketPath}.dead`, world.socketPath);
    dead.close();
    const { guard } = await world.start(quick);
    expect(await control(world.socketPath, '{"op":"status"}')).toHaveProperty('nonce');
    await guard.stop();
    expect(lstatSync(world.socketPath, { throwIfNoEntry: false })).toBeUndefined();
  });

  it('is not created over another file', async () => {
    for (const make of [() => writeFileSync(world.socketPath, 'mine'), () => symlinkSync('/tmp', world.socketPath)]) {
      mkdirSync(path.dirname(world.socketPath), { recursive: true });
      make();
      await expect(world.start(quick)).rejects.toMatchObject({ code: 'unsafe_file' });
      rmSync(world.socketPath);
    }
  });

  it('refuses a second guard of the same home on any port', async () => {
    await world.start(quick);
    const second = new Guard(world.options(quick));
    await expect(second.listen()).rejects.toMatchObject({ code: 'port_in_use' });
    await second.stop();
    expect(await control(world.socketPath, '{"op":"status"}')).toHaveProperty('nonce');
  });

  it('lost to another ends the guard', async () => {
    const { guard } = await world.start(quick);
    rmSync(world.socketPath);
    await guard.closed;
  });

  it('lost with the home keeps the port for sessions, until a new home is there', async () => {
    const { guard, via } = await world.start(quick);
    const session = net.connect(world.socketPath);
    session.write('{"op":"session"}\n');
    await expect.poll(() => control(world.socketPath, '{"op":"status"}')).toHaveProperty('nonce');
    rmSync(path.dirname(world.socketPath), { recursive: true });
    await expect.poll(() => guard.status().pass_through).toMatchObject({ sessions: 1 });
    const { status, socket } = await connectThrough(via);
    expect(status).toBe(200);
    socket.destroy();
    mkdirSync(path.dirname(world.socketPath), { recursive: true });
    await guard.closed;
    session.destroy();
  });

  it('lost with the home ends a guard that no session uses', async () => {
    const { guard } = await world.start(quick);
    rmSync(path.dirname(world.socketPath), { recursive: true });
    await guard.closed;
  });
});

describe('the port', () => {
  it('that a stranger holds is named, and the stranger lives', async () => {
    const stranger = await echoServer('127.0.0.1');
    const guard = new Guard(world.options({ ...quick, port: stranger.port }));
    await expect(guard.listen()).rejects.toMatchObject({
      code: 'port_in_use',
      message: expect.stringContaining(String(stranger.port)),
    });
    await guard.stop();
    const socket = net.connect(stranger.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
    stranger.close();
  });

  it('is bound on loopback only', async () => {
    const { via } = await world.start(quick);
    const probe = net.createServer().listen(via.port, '127.0.0.2');
    await once(probe, 'listening');
    probe.close();
  });
});
