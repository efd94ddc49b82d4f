import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { control, makeWorld, type World } from '../../../helpers/guard-rig.ts';
import { removeRigCerts, startRig } from '../../../helpers/proxy-rig.ts';
import { ask, CLIENT, openRequest, secureThrough, startStandIn } from '../../../helpers/tls-client.ts';

const YEAR_MS = 365 * 86_400_000;
const body = '{"model":"x"}';
let world: World;

beforeAll(async () => {
  world = await makeWorld((_request, response, bytes) => void response.end(bytes));
});
afterEach(() => world.stopAll());
afterAll(async () => {
  await world.close();
  removeRigCerts();
});

describe('after a pause or a clock that was set', () => {
  it.each([
    ['a year forward', YEAR_MS],
    ['a year back', -YEAR_MS],
    ['a night', 8 * 3_600_000],
  ])(
    '(%s) idle connections to the upstream are not used again, and a running stream goes on',
    async (_name, jumpMs) => {
      let nowMs = 1_800_000_000_000;
      let connections = 0;
      let held: ServerResponse | null = null;
      const standIn = await startStandIn(world.theirs, (request: IncomingMessage, response, bytes) => {
        if (request.url !== '/v1/slow') return void response.end(bytes);
        held = response;
        response.writeHead(200, { 'content-type': 'text/plain' }).write('first, ');
      });
      standIn.server.on('connection', () => {
        connections += 1;
      });
      const upstream = { origin: standIn.origin, caFile: world.theirs.caFile, now: () => nowMs };
      const rig = await startRig({ deps: { upstream } });
      try {
        for (const _ of [1, 2]) await rig.ask({ headers: CLIENT, body });
        expect(connections).toBe(1);
        const [idle] = standIn.sockets;
        const secure = await secureThrough(rig.via, rig.ca);
        const slow = openRequest(secure, { path: '/v1/slow', headers: CLIENT });
        slow.end('{}');
        const [response] = (await once(slow, 'response')) as [IncomingMessage];
        // The stream took the idle connection; another one goes idle beside it.
        await rig.ask({ headers: CLIENT, body });
        const before = connections;
        const others = [...standIn.sockets].filter((socket) => socket !== idle);
        expect(others).toHaveLength(1);
        nowMs += jumpMs;
        const [closed] = await Promise.all([
          once(others[0] as NonNullable<(typeof others)[0]>, 'close'),
          rig.ask({ headers: CLIENT, body }),
        ]);
        expect(closed).toBeDefined();
        expect(connections).toBe(before + 1);
        (held as ServerResponse | null)?.end('last');
        let text = '';
        for await (const chunk of response) text += chunk;
        expect(text).toBe('first, last');
        secure.destroy();
      } finally {
        await rig.close();
        await standIn.close();
      }
    },
  );

  it('the guard takes its own sleep for no silence of the engine', async () => {
    const { guard, via } = await world.start();
    const before = await control(world.socketPath, '{"op":"wait_healthy","timeout_ms":60000}');
    const real = performance.now.bind(performance);
    const spy = vi.spyOn(performance, 'now').mockImplementation(() => real() + 8 * 3_600_000);
    try {
      await expect.poll(() => spy.mock.calls.length).toBeGreaterThan(20);
      expect(guard.status().engine).toEqual((before as { engine: object }).engine);
      expect((await ask(via, world.ours.ca, { headers: CLIENT, body })).status).toBe(200);
    } finally {
      spy.mockRestore();
    }
  });
});
