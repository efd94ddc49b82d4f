import { once } from 'node:events';
import { afterAll, expect, it } from 'vitest';
import { type Rig, removeRigCerts, startRig } from '../../helpers/proxy-rig.ts';
import { CLIENT, secureThrough } from '../../helpers/wire.ts';

const HEADERS_MS = 4_000;
const SLOW = 20;
const DRIP_MS = 20;

afterAll(removeRigCerts);

/** Says one more byte of a request's headers again and again; resolves with when it was cut off. */
async function drip(rig: Rig): Promise<number> {
  const fromMs = performance.now();
  const secure = await secureThrough(rig.via, rig.ca).catch(() => null);
  secure?.on('error', () => {}).write('POST /v1/messages HTTP/1.1\r\nHost: api.anthropic.com\r\nx-slow: ');
  const dripping = setInterval(() => secure?.write('a'), DRIP_MS);
  if (secure !== null) await once(secure, 'close');
  clearInterval(dripping);
  return performance.now() - fromMs;
}

it('row 28: clients whose headers never end are closed in time, and others are served meanwhile', async () => {
  const rig = await startRig({ deps: { headersMs: HEADERS_MS } });
  try {
    let open = SLOW;
    const slow = Array.from({ length: SLOW }, () =>
      drip(rig).finally(() => {
        open -= 1;
      }),
    );
    const reply = await rig.ask({ headers: CLIENT, body: '{"messages":[]}' });
    expect(reply.status).toBe(200);
    expect(open).toBeGreaterThan(0);
    for (const ms of await Promise.all(slow)) {
      expect(ms).toBeGreaterThanOrEqual(HEADERS_MS - DRIP_MS);
      // Two looks for slow ones, and a busy machine.
      expect(ms).toBeLessThan(HEADERS_MS * 10);
    }
    expect(rig.standIn.received).toHaveLength(1);
    expect((await rig.ask({ headers: CLIENT, body: '{"messages":[]}' })).status).toBe(200);
  } finally {
    await rig.close();
  }
});
