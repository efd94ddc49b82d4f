import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createRoute } from '../../../../proxy/guard/upstream-proxy.ts';
import { type ConnectProxy, startConnectProxy } from '../../../helpers/connect-proxy.ts';
import { engineScript, makeWorld, type World } from '../../../helpers/guard-rig.ts';
import { type Rig, removeRigCerts, startRig } from '../../../helpers/proxy-rig.ts';
import { ask, CLIENT, connectThrough, startStandIn } from '../../../helpers/tls-client.ts';

const LOGIN = 'jane:s3cret-of-jane';
const body = '{"model":"x"}';
const open: { close(): unknown }[] = [];
const kept = <T extends { close(): unknown }>(part: T): T => {
  open.push(part);
  return part;
};
const corporate = async (options?: Parameters<typeof startConnectProxy>[0]): Promise<ConnectProxy> =>
  kept(await startConnectProxy(options));

let world: World;
beforeAll(async () => {
  world = await makeWorld((_request, response, bytes) => void response.end(bytes));
});
afterEach(async () => {
  for (const part of open.splice(0)) await part.close();
  await world.stopAll();
});
afterAll(async () => {
  await world.close();
  removeRigCerts();
});

describe('requests through the proxy of the network', () => {
  async function rigThrough(url: string, noProxy = '', connectMs = 15_000): Promise<Rig> {
    const certs = world.theirs;
    const standIn = kept(await startStandIn(certs, (_request, response, bytes) => void response.end(bytes)));
    const route = createRoute(url, noProxy);
    const upstream = { origin: standIn.origin, caFile: certs.caFile, route, connectMs };
    const rig = kept(await startRig({ deps: { upstream } }));
    return Object.assign(rig, { standIn });
  }

  it.each([undefined, LOGIN])('arrive byte for byte as they do without it (login %s)', async (login) => {
    const proxy = await corporate(login === undefined ? {} : { login });
    const rig = await rigThrough(proxy.url);
    const headers = [...CLIENT, 'X-Odd-Case', 'a', 'x-odd-case', 'b'];
    for (const _ of [1, 2]) {
      const reply = await rig.ask({ headers, body });
      expect(reply).toMatchObject({ status: 200 });
      expect(reply.body.toString()).toBe(body);
    }
    expect(proxy.asked).toEqual([`127.0.0.1:${rig.standIn.port}`]);
    const straight = await rigThrough('');
    await straight.ask({ headers, body });
    expect(rig.standIn.received[0]?.rawHeaders).toEqual(straight.standIn.received[0]?.rawHeaders);
  });

  it('go past it where NO_PROXY names the upstream', async () => {
    const proxy = await corporate();
    const rig = await rigThrough(proxy.url, '127.0.0.0/8');
    expect((await rig.ask({ headers: CLIENT, body })).status).toBe(200);
    expect(proxy.asked).toEqual([]);
  });

  it('wait longer for its answer than for a connection to it', async () => {
    const rig = await rigThrough((await corporate({ lateMs: 3_000 })).url, '', 2_000);
    expect((await rig.ask({ headers: CLIENT, body })).status).toBe(200);
  });

  it.each([
    ['asks for a name and password (407', { login: LOGIN }, (url: string) => url.replace(`${LOGIN}@`, '')],
    ['does not accept the name and password', { login: LOGIN }, (url: string) => url.replace('s3cret', 'wr0ng')],
    ['does not connect to 127.0.0.1:', { refuse: '403 Not For You' }, (url: string) => url],
  ])('are answered in words when it %s', async (words, options, used) => {
    const proxy = await corporate(options);
    const rig = await rigThrough(used(proxy.url));
    const reply = await rig.ask({ headers: CLIENT, body });
    expect(reply.status).toBe(502);
    expect(reply.body.toString()).toContain(words);
    expect(reply.body.toString() + JSON.stringify(rig.warnings)).not.toMatch(/s3cret|wr0ng|amFuZTp/);
  });

  it('are answered with an explanation when no proxy listens', async () => {
    const gone = await startConnectProxy();
    gone.close();
    const rig = await rigThrough(gone.url);
    const reply = await rig.ask({ headers: CLIENT, body });
    expect(reply.body.toString()).toMatch(/the proxy http:\/\/127\.0\.0\.1:\d+ refuses connections/);
  });
});

describe('tunnels through the proxy of the network', () => {
  const quick = { enginePath: engineScript('never-ready'), timings: { holdMs: 100, startMs: 0 } };

  async function echo(): Promise<number> {
    const server = net.createServer((socket) => void socket.on('error', () => {}).pipe(socket)).listen(0, '127.0.0.1');
    kept(server);
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }

  it.each([undefined, LOGIN])('carry other hosts and, without an engine, the target (login %s)', async (login) => {
    const proxy = await corporate(login === undefined ? {} : { login });
    const { guard, via } = await world.start({ ...quick, route: createRoute(proxy.url, '') });
    const authority = `127.0.0.1:${await echo()}`;
    const { status, socket } = await connectThrough({ ...via, authority });
    expect(status).toBe(200);
    socket.resume().write('hello');
    expect(String((await once(socket, 'data'))[0])).toBe('hello');
    socket.destroy();
    expect((await ask(via, world.theirs.ca, { headers: CLIENT, body })).body.toString()).toBe(body);
    expect(proxy.asked).toEqual([authority, `127.0.0.1:${world.standIn.port}`]);
    expect(guard.status()).toMatchObject({ upstream_proxy: `http://127.0.0.1:${proxy.port}` });
  });

  it('lead a name that only the proxy can look up', async () => {
    const proxy = await corporate({ leadTo: await echo() });
    const { via } = await world.start({ ...quick, route: createRoute(proxy.url, '') });
    const { status, socket } = await connectThrough({ ...via, authority: 'inside.invalid:443' });
    expect(status).toBe(200);
    socket.destroy();
  });

  it('go past it where NO_PROXY names the host', async () => {
    const proxy = await corporate();
    const { via } = await world.start({ ...quick, route: createRoute(proxy.url, '127.0.0.1') });
    const { status, socket } = await connectThrough({ ...via, authority: `127.0.0.1:${await echo()}` });
    expect(status).toBe(200);
    expect(proxy.asked).toEqual([]);
    socket.destroy();
  });

  it('to hosts that it refuses are not a problem for doctor; to the upstream they are', async () => {
    const proxy = await corporate({ refuse: '403 Not For You' });
    const troubles: string[] = [];
    const route = createRoute(proxy.url, '');
    const { guard, via } = await world.start({ ...quick, route, onTrouble: (message) => troubles.push(message) });
    const { status, socket } = await connectThrough({ ...via, authority: 'news.example:443' });
    socket.destroy();
    expect({ status, troubles, kept: guard.status().upstream_proxy_trouble }).toEqual({
      status: 502,
      troubles: [],
      kept: '',
    });
    await ask(via, world.theirs.ca, { headers: CLIENT, body }).catch(() => {});
    expect(guard.status().upstream_proxy_trouble).toContain('does not connect to 127.0.0.1:');
  });

  it('are refused in words, said once in the log and kept for doctor, never with the password', async () => {
    const proxy = await corporate({ login: LOGIN });
    const troubles: string[] = [];
    const route = createRoute(proxy.url.replace('s3cret', 'wr0ng'), '');
    const { guard, via } = await world.start({ ...quick, route, onTrouble: (message) => troubles.push(message) });
    for (const _ of [1, 2]) {
      const { status, socket } = await connectThrough({ ...via, authority: 'a.example:443' });
      expect(status).toBe(502);
      socket.destroy();
    }
    expect(troubles).toHaveLength(1);
    expect(guard.status().upstream_proxy_trouble).toBe(troubles[0]);
    expect(troubles[0]).toContain('does not accept the name and password of HTTPS_PROXY (407');
    expect(JSON.stringify([troubles, guard.status()])).not.toMatch(/wr0ng|jane/);
  });
});
