import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BRIDGE } from '../../proxy/rewrite/plan.ts';
import { busyness } from '../helpers/cpu-load.ts';
import { type FaultRig, startFaultRig } from '../helpers/fault-rig.ts';
import { control } from '../helpers/guard-rig.ts';
import { createLiveRig, longTalk, openTerminal } from '../helpers/live-rig.ts';
import type { ServedRequest } from '../mock-anthropic/index.ts';

/** What no decoder gives back as it came. */
const ODD = '{"n":12345678901234567890,"s":"\\ud800", "model":"x"}';

/** A daemon for the tests of one group, which run one after the other; groups run beside each other. */
function group(name: string, env: Readonly<Record<string, string>>, tests: (rig: () => FaultRig) => void): void {
  describe.concurrent(name, () => {
    let rig: FaultRig;
    beforeAll(async () => {
      rig = await startFaultRig(env);
    });
    afterAll(() => rig.close());
    tests(() => rig);
  });
}

async function killed(rig: FaultRig, signal: NodeJS.Signals): Promise<number> {
  const { pid } = (await rig.status()).engine;
  process.kill(pid, signal);
  return pid;
}

/** The guard knows it from the heartbeat; a question to the engine itself waits until it is free again. */
async function engineByGuard({ home }: FaultRig): Promise<unknown> {
  return (await control(path.join(home.home, 'run', 'guard.sock'), '{"op":"status"}'))['engine'];
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

group(
  'a rewriter in trouble',
  { COMET_FAULT: 'rewrite:throw@1,rewrite:hang@3', COMET_CC_TRIM_DEADLINE_MS: '400' },
  (rig) => {
    it.sequential('sends the request unchanged when it throws', async () => {
      expect((await rig().intercepted(ODD)).body.toString()).toBe(ODD);
      expect((await rig().status()).requests).toMatchObject({ total: 1, failed_open: 1 });
    });

    it.sequential('sends the request unchanged when it exceeds its deadline', async () => {
      await rig().intercepted(ODD);
      const tookMs = await timed(async () => expect((await rig().intercepted(ODD)).body.toString()).toBe(ODD));
      expect(tookMs).toBeGreaterThan(390);
      expect(tookMs).toBeLessThan(2_000 * busyness());
      expect((await rig().status()).requests).toMatchObject({ total: 3, failed_open: 2 });
    });
  },
);

it.concurrent('a rewriter that throws or exceeds its deadline leaves the plan in force', async () => {
  const rig = await createLiveRig({
    COMET_FAULT: 'rewrite:throw@9,rewrite:hang@10',
    COMET_CC_TRIM_DEADLINE_MS: '10000',
  });
  /** The first prompt, the bridge in place of what was cut, the first kept prompt. */
  const start = (): string => {
    const { messages } = last().body as { messages: { content: unknown }[] };
    return JSON.stringify(messages.slice(0, 3).map(({ content }) => content));
  };
  const last = () => rig.standin.requests.at(-1) as ServedRequest;
  try {
    const terminal = openTerminal(rig);
    await longTalk(rig, terminal, { topic: 'service' });
    const plan = start();
    expect(last().bytes.includes(BRIDGE)).toBe(true);
    for (const failed of [1, 2]) {
      await terminal.say('go on');
      expect(start()).toBe(plan);
      expect((await rig.status()).requests.failed_open).toBe(failed);
    }
    expect(rig.standin.refused).toEqual([]);
  } finally {
    await rig.close();
  }
});

group('a killed engine', { COMET_CC_HOLD_MS: '60000' }, (rig) => {
  it.sequential('holds a CONNECT for the next engine when it was idle', async () => {
    await killed(rig(), 'SIGKILL');
    expect((await rig().intercepted(ODD)).body.toString()).toBe(ODD);
    const { engine, tunnels } = await rig().status();
    expect({ restarts: engine.restarts, tunneled: tunnels.failed_open }).toEqual({ restarts: 1, tunneled: 0 });
  });

  it.sequential.each(['SIGKILL', 'SIGABRT', 'SIGSEGV'] as const)(
    'closes the stream on %s, answers the retry, and starts another engine',
    async (signal) => {
      const stream = await rig().stream();
      const pid = await killed(rig(), signal);
      await expect(stream.whole).rejects.toThrow();
      expect((await rig().either(ODD)).body.toString()).toBe(ODD);
      await rig().statusUntil(({ engine }) => engine.state === 'healthy' && engine.pid !== pid);
      expect((await rig().intercepted(ODD)).status).toBe(200);
    },
  );
});

group('an engine without memory', { COMET_FAULT: 'rewrite:oom@2', NODE_OPTIONS: '--max-old-space-size=96' }, (rig) => {
  it.sequential('closes the stream when it runs out of memory, and starts another engine', async () => {
    const stream = await rig().stream();
    await expect(rig().intercepted(ODD)).rejects.toThrow();
    await expect(stream.whole).rejects.toThrow();
    expect((await rig().either(ODD)).body.toString()).toBe(ODD);
    const { engine } = await rig().statusUntil((now) => now.engine.state === 'healthy');
    expect(engine.restarts).toBe(1);
  });
});

group('an engine that is silent', { COMET_FAULT: 'rewrite:block', COMET_CC_HOLD_MS: '2000' }, (rig) => {
  it.sequential('is tunneled past while its event loop is blocked', async ({ expect }) => {
    const { pid } = (await rig().status()).engine;
    const blocked = rig().intercepted(ODD);
    await expect.poll(() => engineByGuard(rig())).toMatchObject({ state: 'late', pid });
    expect((await rig().tunnelled(ODD)).status).toBe(200);
    expect((await blocked).body.toString()).toBe(ODD);
    expect((await rig().statusUntil((now) => now.engine.state === 'healthy')).engine.restarts).toBe(0);
  });

  it.sequential('is tunneled past after 2 s', async ({ expect }) => {
    const { engine } = await rig().status();
    // Nothing answers from here on: a stopped engine is alive and silent, and no successor comes.
    process.kill(engine.pid, 'SIGSTOP');
    try {
      // Until then the guard waits for twice as long as a start took.
      await expect.poll(() => engineByGuard(rig())).toMatchObject({ state: 'late', pid: engine.pid });
      const tookMs = await timed(async () => expect((await rig().tunnelled(ODD)).status).toBe(200));
      expect(tookMs).toBeGreaterThan(1_900);
      expect(tookMs).toBeLessThan(6_000 * busyness());
    } finally {
      process.kill(engine.pid, 'SIGCONT');
    }
  });
});

group('an engine in a crash loop', { COMET_FAULT: 'start:exit', COMET_CC_HOLD_MS: '100000' }, (rig) => {
  it.sequential('is tunneled past at once, and doctor reports it', async () => {
    expect(rig().started).toMatchObject({ code: 1, stderr: expect.stringContaining('ends again and again') });
    const tookMs = await timed(async () => expect((await rig().tunnelled(ODD)).body.toString()).toBe(ODD));
    expect(tookMs).toBeLessThan(50_000);
    const doctor = await rig().home.run(['doctor']);
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toContain('crash loop');
  });
});
