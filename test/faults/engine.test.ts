import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { busyness } from '../helpers/cpu-load.ts';
import { type FaultRig, startFaultRig } from '../helpers/fault-rig.ts';
import { control } from '../helpers/guard-rig.ts';

/** What no decoder gives back as it came. */
const ODD = '{"n":12345678901234567890,"s":"\\ud800", "model":"x"}';
let rig: FaultRig;

afterEach(() => rig.close());

async function killed(signal: NodeJS.Signals): Promise<number> {
  const { pid } = (await rig.status()).engine;
  process.kill(pid, signal);
  return pid;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

describe('an engine in trouble', () => {
  it('sends the request unchanged when the rewriter throws', async () => {
    rig = await startFaultRig({ COMET_FAULT: 'rewrite:throw' });
    expect((await rig.intercepted(ODD)).body.toString()).toBe(ODD);
    expect((await rig.status()).requests).toMatchObject({ total: 1, failed_open: 1 });
  });

  it('sends the request unchanged when the rewriter exceeds its deadline', async () => {
    rig = await startFaultRig({ COMET_FAULT: 'rewrite:hang@2', COMET_CC_TRIM_DEADLINE_MS: '400' });
    await rig.intercepted(ODD);
    const tookMs = await timed(async () => expect((await rig.intercepted(ODD)).body.toString()).toBe(ODD));
    expect(tookMs).toBeGreaterThan(390);
    expect(tookMs).toBeLessThan(2_000 * busyness());
    expect((await rig.status()).requests).toMatchObject({ total: 2, failed_open: 1 });
  });

  it('holds a CONNECT after an idle engine is killed, and tunnels after 2 s without a new one', async () => {
    rig = await startFaultRig({ COMET_CC_HOLD_MS: '60000' });
    await killed('SIGKILL');
    expect((await rig.intercepted(ODD)).body.toString()).toBe(ODD);
    const after = await rig.status();
    expect({ restarts: after.engine.restarts, tunnelled: after.tunnels.failed_open }).toEqual({
      restarts: 1,
      tunnelled: 0,
    });
    await rig.close();

    rig = await startFaultRig();
    const { engine } = await rig.status();
    // Nothing answers from here on: a stopped engine is alive and silent, and no successor comes.
    process.kill(engine.pid, 'SIGSTOP');
    const startedAt = performance.now();
    expect((await rig.tunnelled(ODD)).status).toBe(200);
    expect(performance.now() - startedAt).toBeGreaterThan(1_900);
    process.kill(engine.pid, 'SIGCONT');
  });

  it('closes the stream when the engine is killed, and answers the retry', async () => {
    rig = await startFaultRig();
    const stream = await rig.stream();
    await killed('SIGKILL');
    await expect(stream.whole).rejects.toThrow();
    expect((await rig.either(ODD)).body.toString()).toBe(ODD);
  });

  it.each(['SIGABRT', 'SIGSEGV'] as const)('closes the stream on %s and starts another engine', async (signal) => {
    rig = await startFaultRig();
    const stream = await rig.stream();
    const pid = await killed(signal);
    await expect(stream.whole).rejects.toThrow();
    expect((await rig.either(ODD)).body.toString()).toBe(ODD);
    await rig.statusUntil(({ engine }) => engine.state === 'healthy' && engine.pid !== pid);
    expect((await rig.intercepted(ODD)).status).toBe(200);
  });

  it('closes the stream when it runs out of memory, and starts another engine', async () => {
    rig = await startFaultRig({ COMET_FAULT: 'rewrite:oom@2', NODE_OPTIONS: '--max-old-space-size=96' });
    const stream = await rig.stream();
    const lost = rig.intercepted(ODD);
    await expect(lost).rejects.toThrow();
    await expect(stream.whole).rejects.toThrow();
    expect((await rig.either(ODD)).body.toString()).toBe(ODD);
    const { engine } = await rig.statusUntil((now) => now.engine.state === 'healthy');
    expect(engine.restarts).toBe(1);
  });

  it('tunnels new requests while its event loop is blocked', async () => {
    rig = await startFaultRig({ COMET_FAULT: 'rewrite:block', COMET_CC_HOLD_MS: '500' });
    const { pid } = (await rig.status()).engine;
    const blocked = rig.intercepted(ODD);
    // The guard knows it from the heartbeat; whoever asks the engine too waits for as long as it is blocked.
    const socket = path.join(rig.home.home, 'run', 'guard.sock');
    const engine = async (): Promise<unknown> => (await control(socket, '{"op":"status"}'))['engine'];
    await expect.poll(engine).toMatchObject({ state: 'late', pid });
    expect((await rig.tunnelled(ODD)).status).toBe(200);
    expect((await blocked).body.toString()).toBe(ODD);
    expect((await rig.statusUntil(({ engine }) => engine.state === 'healthy')).engine.restarts).toBe(0);
  });

  it('tunnels at once in a crash loop, which doctor reports', async () => {
    rig = await startFaultRig({ COMET_FAULT: 'start:exit', COMET_CC_HOLD_MS: '100000' });
    expect(rig.started).toMatchObject({ code: 1, stderr: expect.stringContaining('ends again and again') });
    const tookMs = await timed(async () => expect((await rig.tunnelled(ODD)).body.toString()).toBe(ODD));
    expect(tookMs).toBeLessThan(50_000);
    const doctor = await rig.home.run(['doctor']);
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toContain('crash loop');
  });
});
