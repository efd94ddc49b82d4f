import { once } from 'node:events';
import { afterAll, expect, it } from 'vitest';
import { busyness } from '../../../helpers/cpu-load.ts';
import { type Rig, removeRigCerts, startRig } from '../../../helpers/proxy-rig.ts';
import { CLIENT, connectThrough, secureThrough } from '../../../helpers/tls-client.ts';

const SLOW = 20;
const DRIP_MS = 20;

afterAll(removeRigCerts);

/** Says one more byte of a request's headers again and again; `cutOff` resolves with how long it was let. */
async function drip(rig: Rig): Promise<{ cutOff: Promise<number> }> {
  const fromMs = performance.now();
  const secure = await secureThrough(rig.via, rig.ca);
  secure.on('error', () => {}).write('POST /v1/messages HTTP/1.1\r\nHost: api.anthropic.com\r\nx-slow: ');
  const dripping = setInterval(() => secure.write('a'), DRIP_MS);
  // Not `once`: it rejects where the last byte meets a closed connection.
  const cutOff = new Promise<number>((resolve) => {
    secure.once('close', () => {
      clearInterval(dripping);
      resolve(performance.now() - fromMs);
    });
  });
  return { cutOff };
}

it.concurrent('clients whose headers never end are disconnected while others are served', async () => {
  // Long enough for all of them to connect, and for another one to be answered then.
  const headersMs = Math.ceil(4_000 * busyness());
  const rig = await startRig({ deps: { headersMs } });
  try {
    let open = SLOW;
    const dripping = await Promise.all(Array.from({ length: SLOW }, () => drip(rig)));
    const slow = dripping.map(({ cutOff }) =>
      cutOff.finally(() => {
        open -= 1;
      }),
    );
    const reply = await rig.ask({ headers: CLIENT, body: '{"messages":[]}' });
    expect(reply.status).toBe(200);
    expect(open).toBeGreaterThan(0);
    for (const ms of await Promise.all(slow)) {
      expect(ms).toBeGreaterThanOrEqual(headersMs - DRIP_MS);
      // Two looks for slow ones, and a busy machine.
      expect(ms).toBeLessThan(headersMs * 10);
    }
    expect(rig.standIn.received).toHaveLength(1);
    expect((await rig.ask({ headers: CLIENT, body: '{"messages":[]}' })).status).toBe(200);
  } finally {
    await rig.close();
  }
});

it.concurrent('a client whose ClientHello never ends is disconnected after 10 s', async () => {
  const rig = await startRig();
  try {
    const fromMs = performance.now();
    const { socket } = await connectThrough(rig.via);
    socket.write(Buffer.from([0x16, 3, 1, 2, 0, 1]));
    await once(socket.resume(), 'close');
    const tookMs = performance.now() - fromMs;
    expect(tookMs).toBeGreaterThan(9_900);
    expect(tookMs).toBeLessThan(11_000 * busyness());
  } finally {
    await rig.close();
  }
});
