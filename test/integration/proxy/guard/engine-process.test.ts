import { once } from 'node:events';
import { existsSync, readdirSync, statSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { Duplex } from 'node:stream';
import tls from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { byteSink } from '../../../../common/log.ts';
import { ENGINE_ENV } from '../../../../proxy/guard/engine-process.ts';
import { busyness } from '../../../helpers/cpu-load.ts';
import { control, engineScript, makeWorld, type World } from '../../../helpers/guard-rig.ts';
import { sseMessage } from '../../../helpers/sse.ts';
import { ask, askOn, CLIENT, closed, openRequest, secureThrough, type Via } from '../../../helpers/tls-client.ts';

let world: World;
let release: (() => void) | null = null;

beforeAll(async () => {
  world = await makeWorld((request, response, body) => {
    if (request.url === '/v1/messages?unanswered') return;
    if (request.url === '/v1/messages?long') return void response.end('x'.repeat(4_096));
    if (request.url !== '/v1/messages?stream') return void response.end(body);
    const bytes = sseMessage('one, two');
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(bytes.subarray(0, 500));
    release = () => void response.end(bytes.subarray(500));
  });
});
afterEach(() => world.stopAll());
afterAll(() => world.close());

const body = '{"model":"x"}';
const asked = (via: Via, ca: string) => ask(via, ca, { headers: CLIENT, body });

async function openStream(via: Via) {
  const secure = await secureThrough(via, world.ours.ca);
  secure.on('error', () => {});
  const request = openRequest(secure, { path: '/v1/messages?stream', headers: CLIENT });
  request.on('error', () => {}).end('{}');
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  response.on('data', (chunk: Buffer) => chunks.push(chunk));
  const ended = new Promise<Buffer>((resolve, reject) => {
    response.once('end', () => resolve(Buffer.concat(chunks))).once('error', reject);
  });
  ended.catch(() => {});
  await once(response, 'data');
  return { ended, secure };
}

/** Sends CONNECT and whatever is written at once, without waiting for the answer, which is never seen. */
function hastyClient(via: Via): Duplex {
  const socket = net.connect(via.port, '127.0.0.1');
  socket.write(`CONNECT api.anthropic.com:443 HTTP/1.1\r\nHost: api.anthropic.com\r\n${via.connectHeaders}\r\n`);
  let head: Buffer | null = Buffer.alloc(0);
  const behind = new Duplex({
    read() {},
    write: (chunk: Buffer, _encoding, done) => void socket.write(chunk, done),
    destroy(error, done) {
      socket.destroy();
      done(error);
    },
  });
  socket.on('data', (chunk: Buffer) => {
    if (head === null) return void behind.push(chunk);
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    behind.push(head.subarray(end + 4));
    head = null;
  });
  socket.on('error', () => {}).once('close', () => behind.destroy());
  return behind;
}

const getPid = async (): Promise<number> => {
  const status = await control(world.socketPath, '{"op":"wait_healthy","timeout_ms":60000}');
  return (status as { engine: { pid: number } }).engine.pid;
};

describe('guard and engine', () => {
  it('carry a request through CONNECT, TLS and upstream', async () => {
    const { guard, via } = await world.start();
    expect((await asked(via, world.ours.ca)).body.toString()).toBe(body);
    expect(guard.status()).toMatchObject({
      engine: { state: 'healthy', restarts: 0 },
      tunnels: { total: 1, failed_open: 0 },
    });
  });

  it('count a client until either side ends its connection', async () => {
    const { guard, via } = await world.start();
    const first = await secureThrough(via, world.ours.ca);
    const second = await secureThrough(via, world.ours.ca);
    expect(guard.status().tunnels).toEqual({ open: 2, total: 2, failed_open: 0, bypassing: 0 });
    first.destroy();
    await expect.poll(() => guard.status().tunnels.open).toBe(1);
    const gone = closed(second.resume());
    process.kill(await getPid(), 'SIGKILL');
    await gone;
    await expect.poll(() => guard.status().tunnels.open).toBe(0);
  });

  it('keep what a client says before it is answered', async () => {
    const { guard, via } = await world.start();
    const pid = await getPid();
    // The CONNECT waits for the engine, so that the first words of TLS come while it does.
    process.kill(pid, 'SIGSTOP');
    const hasty = hastyClient(via);
    await control(world.socketPath, '{"op":"status"}');
    const secure = tls.connect({ socket: hasty, servername: 'api.anthropic.com', ca: world.ours.ca });
    await control(world.socketPath, '{"op":"status"}');
    process.kill(pid, 'SIGCONT');
    await once(secure, 'secureConnect');
    expect((await askOn(secure, { headers: CLIENT, body })).body.toString()).toBe(body);
    expect(guard.status().tunnels).toMatchObject({ open: 1, failed_open: 0 });
    secure.destroy();
  });

  it('hold a CONNECT for the restarted engine after a kill', async () => {
    const { guard, via } = await world.start();
    process.kill(await getPid(), 'SIGKILL');
    expect((await asked(via, world.ours.ca)).status).toBe(200);
    expect(guard.status()).toMatchObject({ engine: { restarts: 1 }, tunnels: { failed_open: 0 } });
  });

  it('hold it while the engine starts, however much longer than before that takes', async () => {
    const engineEnv = { ...world.options().engineEnv };
    const { guard, via } = await world.start({ engineEnv, timings: { holdMs: 100, startMs: 120_000 } });
    const pid = await getPid();
    engineEnv['TEST_START_MS'] = '3000';
    process.kill(pid, 'SIGKILL');
    expect((await asked(via, world.ours.ca)).status).toBe(200);
    expect(guard.status()).toMatchObject({ engine: { restarts: 1 }, tunnels: { failed_open: 0 } });
  });

  it('end a tunnel past the engine once that is healthy and nothing is under way', async () => {
    const { guard, via } = await world.start({ timings: { holdMs: 100, restMs: 200 } });
    const pid = await getPid();
    process.kill(pid, 'SIGSTOP');
    await expect.poll(() => guard.status().engine.state, { timeout: 10_000 }).toBe('late');
    const [resting, waiting] = [await secureThrough(via, world.theirs.ca), await secureThrough(via, world.theirs.ca)];
    const gone = closed(resting);
    openRequest(resting, { path: '/v1/messages?long', headers: CLIENT }).end(body);
    openRequest(
      waiting.on('error', () => {}),
      { path: '/v1/messages?unanswered', headers: CLIENT },
    )
      .on('error', () => {})
      .end(body);
    expect(guard.status().tunnels).toMatchObject({ open: 2, failed_open: 2, bypassing: 2 });
    process.kill(pid, 'SIGCONT');
    await gone;
    await expect.poll(() => guard.status().tunnels.bypassing).toBe(1);
    expect(waiting.destroyed).toBe(false);
    expect((await asked(via, world.ours.ca)).status).toBe(200);
    waiting.destroy();
  });

  it('close the stream that a killed engine had, and take the retry', async () => {
    const { via } = await world.start();
    const pid = await getPid();
    const stream = await openStream(via);
    process.kill(pid, 'SIGKILL');
    await expect(stream.ended).rejects.toThrow();
    expect((await asked(via, world.ours.ca)).status).toBe(200);
  });

  it('close every connection that a killed engine had not taken over yet', async () => {
    const { guard, via } = await world.start({ enginePath: engineScript('deaf') });
    const pid = await getPid();
    const gone = [hastyClient(via), hastyClient(via)].map((client) => once(client.resume(), 'close'));
    await expect.poll(() => guard.status().tunnels.total).toBe(2);
    process.kill(pid, 'SIGKILL');
    await Promise.all(gone);
  });

  it('tunnel to the real host when the engine is not there in time', async () => {
    const { guard, via } = await world.start({
      enginePath: engineScript('never-ready'),
      timings: { holdMs: 300, startMs: 0 },
    });
    const startedAt = performance.now();
    expect((await asked(via, world.theirs.ca)).body.toString()).toBe(body);
    expect(performance.now() - startedAt).toBeGreaterThan(290);
    expect(guard.status().tunnels).toMatchObject({ total: 1, failed_open: 1 });
  });

  it('tunnel after 2 s when the engine accepts a connection and never answers', async () => {
    const { guard, via } = await world.start({ enginePath: engineScript('mute'), timings: {} });
    await getPid();
    const startedAt = performance.now();
    expect((await asked(via, world.theirs.ca)).status).toBe(200);
    expect(performance.now() - startedAt).toBeGreaterThan(1_900);
    expect(guard.status().tunnels.failed_open).toBe(1);
  });

  it('tunnel while the engine hangs, and use it again when it is back', async () => {
    const { guard, via } = await world.start({ timings: { holdMs: 4_000 } });
    const pid = await getPid();
    process.kill(pid, 'SIGSTOP');
    expect((await asked(via, world.theirs.ca)).status).toBe(200);
    await expect.poll(() => guard.status().engine).toMatchObject({ state: 'late', pid, restarts: 0 });
    process.kill(pid, 'SIGCONT');
    expect(await getPid()).toBe(pid);
    expect((await asked(via, world.ours.ca)).status).toBe(200);
  });

  it('kill an engine that hangs for good, and start another', async () => {
    const { via, guard } = await world.start({
      // One that takes as long to start as one may hang is ended too, and another one tries.
      timings: { hungMs: 8_000, holdMs: 120_000, crashWindowMs: 1_000 },
    });
    process.kill(await getPid(), 'SIGSTOP');
    expect((await asked(via, world.ours.ca)).status).toBe(200);
    expect(guard.status().engine.restarts).toBeGreaterThan(0);
  });

  it('stop restarting an engine that dies again and again, and tunnel at once', async () => {
    const { guard, via } = await world.start({ enginePath: engineScript('crash'), timings: { holdMs: 60_000 } });
    const status = await control(world.socketPath, '{"op":"wait_healthy","timeout_ms":60000}');
    expect(status).toMatchObject({ engine: { state: 'crash_loop', restarts: 5 } });
    expect((await asked(via, world.theirs.ca)).status).toBe(200);
    expect(guard.status().tunnels.failed_open).toBe(1);
  });

  it('try a crashing engine again after a pause', async () => {
    const { guard } = await world.start({ enginePath: engineScript('crash'), timings: { crashWindowMs: 1_000 } });
    await expect.poll(() => guard.status().engine.restarts).toBeGreaterThan(5);
  });

  it('keep what an engine pours out within bounds, and go on', async () => {
    const file = path.join(world.home, 'guard.log');
    const onOutput = byteSink(file, { fileBytes: 100_000, files: 3 });
    const { via } = await world.start({
      enginePath: engineScript('flood'),
      timings: { holdMs: 100, startMs: 0 },
      onOutput,
    });
    await expect.poll(() => existsSync(`${file}.2`)).toBe(true);
    expect((await asked(via, world.theirs.ca)).status).toBe(200);
    await world.stopAll();
    const names = readdirSync(world.home).filter((name) => name.startsWith('guard.log'));
    expect(names.sort()).toEqual(['guard.log', 'guard.log.1', 'guard.log.2']);
    for (const name of names) expect(statSync(path.join(world.home, name)).size).toBeLessThan(100_001);
  });

  it.runIf(process.platform === 'linux')('give the engine few heaps, and leave what the user set', async () => {
    const wrote = async (own: NodeJS.ProcessEnv): Promise<unknown> => {
      const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !(name in ENGINE_ENV)));
      const line = new Promise<string>((resolve) => {
        const onOutput = (bytes: Buffer): void => resolve(bytes.toString());
        void world.start({ enginePath: engineScript('arenas'), engineEnv: { ...env, ...own }, onOutput });
      });
      return JSON.parse(await line);
    };
    const others = Object.keys(ENGINE_ENV).filter((name) => name !== 'MALLOC_ARENA_MAX');
    expect(await wrote({})).toEqual(['2', ['MALLOC_ARENA_MAX', ...others]]);
    await world.stopAll();
    expect(await wrote({ MALLOC_ARENA_MAX: '8' })).toEqual(['8', others]);
  });

  it('finish a running stream after a stop, and tunnel new requests', async () => {
    const { guard, via } = await world.start();
    await getPid();
    const stream = await openStream(via);
    expect(await control(world.socketPath, '{"op":"stop","now":true}')).toEqual({ ok: true });
    await expect.poll(() => guard.status().engine.state).toBe('stopped');
    expect((await asked(via, world.theirs.ca)).status).toBe(200);
    release?.();
    expect((await stream.ended).equals(sseMessage('one, two'))).toBe(true);
    await guard.closed;
    await expect(asked(via, world.ours.ca)).rejects.toThrow();
  });

  it('pass sessions through after a stop, start again on the same port, and close it some time after the last', async () => {
    const { guard, via } = await world.start({ timings: { unusedMs: 200, holdMs: 30_000 } });
    expect((await asked(via, world.ours.ca)).status).toBe(200);
    const session = net.connect(world.socketPath).on('error', () => {});
    session.write('{"op":"session"}\n');
    await control(world.socketPath, '{"op":"stop"}');
    await expect.poll(() => guard.status().pass_through).toMatchObject({ sessions: 1 });
    expect((await asked(via, world.theirs.ca)).status).toBe(200);
    const againMs = performance.now();
    expect(await control(world.socketPath, '{"op":"start","env":{}}')).toEqual({ ok: true });
    expect(guard.status().uptime_ms).toBeLessThanOrEqual(Math.ceil(performance.now() - againMs));
    expect((await asked(via, world.ours.ca)).status).toBe(200);
    expect(guard.status().pass_through).toBe(null);
    await control(world.socketPath, '{"op":"stop"}');
    await expect.poll(() => guard.status().pass_through).toMatchObject({ sessions: 1 });
    session.destroy();
    await guard.closed;
    await expect(asked(via, world.theirs.ca)).rejects.toThrow();
  });

  it('leave no port behind after a stop without a session', async () => {
    const { guard } = await world.start();
    await control(world.socketPath, '{"op":"stop"}');
    await guard.closed;
  });

  it('end within a second when asked to stop twice', async () => {
    const { guard, via } = await world.start();
    await getPid();
    const stream = await openStream(via);
    await control(world.socketPath, '{"op":"stop","now":true}');
    const startedAt = performance.now();
    await control(world.socketPath, '{"op":"stop","now":true}');
    await guard.closed;
    expect(performance.now() - startedAt).toBeLessThan(1_000 * busyness());
    await expect(stream.ended).rejects.toThrow();
  });
});
