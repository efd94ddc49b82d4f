import { readdirSync, watch } from 'node:fs';
import { appendFile, mkdir, readdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createLiveRig,
  type LiveRig,
  type LiveStatus,
  longTalk,
  openTerminal,
  type Terminal,
} from '../helpers/live-rig.ts';

/** Groups run beside each other, the tests of a group one after the other on one daemon. */
function group(name: string, tests: (use: Group) => void): void {
  describe.concurrent(name, () => {
    let rig: LiveRig;
    beforeAll(async () => {
      rig = await createLiveRig();
    });
    afterAll(() => rig.close());
    tests({
      rig: () => rig,
      inHome: (...parts) => path.join(rig.home.home, ...parts),
      async trimmed(terminal) {
        const { bytes } = terminal.next('go on');
        await terminal.say('go on');
        const sent = rig.standin.requests.findLast(({ sessionId }) => sessionId === terminal.sessionId);
        return (sent?.bytes.length ?? 0) < bytes.length / 1.2;
      },
      statusUntil: (test) => rig.statusUntil(test),
    });
  });
}

interface Group {
  rig(): LiveRig;
  inHome(...parts: string[]): string;
  /** Sends one more prompt and says whether it went out trimmed. */
  trimmed(terminal: Terminal): Promise<boolean>;
  statusUntil(test: (status: LiveStatus) => boolean): Promise<LiveStatus>;
}

const names = (status: LiveStatus, file: string): boolean => status.problems.some((each) => each.file === file);

/** Runs `then` with the first change below `dir`. */
function onChange(dir: string, then: () => void): Promise<void> {
  const below = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isDirectory());
  const folders = [dir, ...below.map((entry) => path.join(entry.parentPath, entry.name))];
  return new Promise((resolve) => {
    const watches = folders.map((folder) => watch(folder, stop));
    function stop(): void {
      then();
      for (const each of watches) each.close();
      resolve();
    }
  });
}

group('during a conversation', ({ rig: its, inHome, trimmed, statusUntil }) => {
  it.sequential('folders that become files cost memory only, are named, and work again when repaired', async () => {
    const rig = its();
    const terminal = openTerminal(rig);
    await longTalk(rig, terminal, { topic: 'service' });
    const broken = ['journal', 'plans', path.join('memory', 'nodes')];
    for (const name of broken) {
      await rename(inHome(name), inHome(`${name}.away`));
      await writeFile(inHome(name), 'in the way');
    }
    const fresh = openTerminal(rig);
    await longTalk({ ...rig, flush: async () => {} }, fresh, { topic: 'queue', turns: 4 });
    expect(await trimmed(terminal)).toBe(true);
    const status = await statusUntil((now) => names(now, inHome('journal')));
    expect(status.engine).toMatchObject({ state: 'healthy', restarts: 0 });
    const doctor = await rig.home.run(['doctor']);
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toContain(inHome('journal'));
    for (const name of broken) {
      await rm(inHome(name));
      await rename(inHome(`${name}.away`), inHome(name));
    }
    await fresh.say('all is well again');
    await fresh.say('and goes on');
    await rig.flush();
    expect((await rig.status()).problems).toEqual([]);
    expect(await rig.filesWith('all is well again')).not.toEqual([]);
    expect(rig.standin.refused).toEqual([]);
  });

  it.sequential('plans that cannot be written prevent a new cut, and the current one is kept', async () => {
    const rig = its();
    const [planned, late] = [openTerminal(rig), openTerminal(rig)];
    await longTalk(rig, planned, { topic: 'service' });
    await rename(inHome('plans'), inHome('plans.away'));
    await writeFile(inHome('plans'), 'in the way');
    await longTalk(rig, late, { topic: 'queue' });
    expect(await trimmed(late)).toBe(false);
    expect(await trimmed(planned)).toBe(true);
    expect(names(await rig.status(), inHome('plans'))).toBe(true);
    expect(rig.standin.refused).toEqual([]);
    await rm(inHome('plans'));
    await rename(inHome('plans.away'), inHome('plans'));
    expect(await trimmed(late)).toBe(true);
  });

  it.sequential('an index that vanishes or is damaged silences recall, is named, and is rebuilt as soon as that is possible', async ({
    expect,
  }) => {
    const rig = its();
    const { run } = rig.home;
    const terminal = openTerminal(rig);
    await longTalk(rig, terminal, { topic: 'archive' });
    await rig.flush();
    const search = async () => (await run(['memory', 'search', 'which port does archive 3 listen on'])).stdout;
    const problems = async () => (await rig.status()).problems.map(({ message }) => message);
    await rm(inHome('index'), { recursive: true });
    await writeFile(inHome('index'), 'in the way');
    for (let turn = 0; turn < 5; turn += 1) expect(await trimmed(terminal)).toBe(true);
    expect(await problems()).toContainEqual(expect.stringContaining('recall is off'));
    expect((await run(['doctor'])).stdout).toContain('comet-cc memory reindex tries at once');
    const { stdout: log } = await run(['logs']);
    expect(log.split('memory lookup failed').length - 1).toBeLessThanOrEqual(3);
    await rm(inHome('index'));
    expect((await run(['memory', 'reindex'])).code).toBe(0);
    expect(await search()).toContain('archive 3');
    expect(await problems()).toEqual([]);

    await rm(inHome('index'), { recursive: true });
    await expect.poll(search).toContain('archive 3');
    await expect.poll(problems).toEqual([]);

    for (const entry of await readdir(inHome('index'), { recursive: true, withFileTypes: true })) {
      if (entry.isFile()) await truncate(path.join(entry.parentPath, entry.name), 3);
    }
    await expect.poll(search).toContain('archive 3');
    expect((await rig.status()).engine.restarts).toBe(0);
    expect(rig.standin.refused).toEqual([]);
  });
});

group('a turn in the journal', ({ rig: its, inHome, statusUntil }) => {
  it.sequential('a turn that ends the engine when it is read or compacted is skipped after the second time, and named', async ({
    expect,
  }) => {
    const rig = its();
    const { run } = rig.home;
    const terminal = openTerminal(rig);
    const { sessionId } = terminal;
    const journal = inHome('journal', `${sessionId}.log`);
    for (const name of ['alpha', 'beta', 'gamma']) await terminal.say(`The ${name} service listens on port 4711.`);
    await rig.flush();
    for (const name of ['delta', 'epsilon']) await terminal.say(`The ${name} service listens on port 4712.`);
    const turnIds = async () =>
      [...(await readFile(journal, 'latin1')).matchAll(/(?<="end":")[0-9a-f]{64}/g)].map(String);
    await expect.poll(turnIds).toHaveLength(5);
    const [, beta = '', , , epsilon = ''] = await turnIds();
    const { pid, engine } = await rig.status();
    for (const each of [engine.pid, pid]) process.kill(each, 'SIGKILL');

    await run(['start'], { env: { COMET_FAULT: `read:exit=${beta},compact:exit=${epsilon}` } });
    const skipped = (id: string) => (status: LiveStatus) =>
      status.problems.some(({ message }) => message.includes(id.slice(0, 12)) && message.includes(sessionId));
    expect((await statusUntil(skipped(beta))).engine.restarts).toBe(2);
    while (!skipped(epsilon)(await rig.status())) await run(['flush']);
    await rig.flush();
    expect((await rig.status()).engine.restarts).toBe(4);

    const doctor = (await run(['doctor'])).stdout;
    const date = new Date().toISOString().slice(0, 10);
    for (const told of [sessionId, beta.slice(0, 12), date, 'comet-cc memory restore']) expect(doctor).toContain(told);
    const restored = (await run(['memory', 'restore', sessionId])).stdout;
    for (const name of ['beta', 'epsilon']) expect(restored).toContain(`The ${name} service`);
    for (const name of ['alpha', 'delta']) {
      expect((await run(['memory', 'search', `which port does the ${name} service use`])).stdout).toContain(name);
    }
    // Claude Code sends them again with each request.
    await terminal.say('And the zeta service?');
    await rig.flush();
    expect((await rig.status()).engine.restarts).toBe(4);

    expect((await run(['memory', 'forget', '--session', sessionId, '--yes'])).code).toBe(0);
    expect(await readFile(journal, 'latin1').catch(() => '')).not.toContain('The beta service');
    expect((await rig.status()).problems).toEqual([]);
  });
});

group('at a start', ({ rig: its, inHome, trimmed }) => {
  it.sequential('damaged plans, a broken node and a torn journal cost what is broken, and nothing else', async () => {
    const rig = its();
    const terminal = openTerminal(rig);
    await longTalk(rig, terminal, { topic: 'service' });
    await rig.flush();
    await rig.home.run(['stop', '--now']);
    const plans = inHome('plans', `${terminal.sessionId}.jsonl`);
    await appendFile(plans, '\nnull\n{"kind":"plan"}\n{"kind":"plan","plan":{"id":"x"},"served":"y"}\n[]\n{"kind":');
    await mkdir(inHome('plans', 'folder.jsonl'));
    await appendFile(inHome('journal', `${terminal.sessionId}.log`), 'torn');
    const [file] = (await readdir(inHome('memory', 'nodes'), { recursive: true })).filter((name) =>
      name.endsWith('.md'),
    );
    const nodes = inHome('memory', 'nodes', file as string);
    const section = '## mem_20260101_000000_abcdef mine\n\n- importance: URGENT\n\nwhat I typed\n';
    await appendFile(nodes, section);

    await rig.home.json(['start', '--json']);
    expect(await trimmed(terminal)).toBe(true);
    for (let turn = 0; turn < 4; turn += 1)
      await terminal.say(`more about service ${turn}. ${'Notes follow. '.repeat(150)}`);
    await rig.flush();
    expect(await readFile(nodes, 'utf8')).toContain(section.trimEnd());
    const status = await rig.status();
    expect(status.engine).toMatchObject({ state: 'healthy', restarts: 0 });
    const message = expect.stringMatching(/line \d+: mem_20260101_000000_abcdef: (expected|.*importance)/);
    expect(status.problems).toContainEqual({ file: nodes, message });
    expect(names(status, inHome('plans', 'folder.jsonl'))).toBe(true);
    const doctor = await rig.home.run(['doctor']);
    expect(doctor.stdout).toContain('mem_20260101_000000_abcdef');
    expect((await rig.home.run(['memory', 'search', 'service 3 port'])).stdout).toContain('service 3');
    expect(rig.standin.refused).toEqual([]);
  });

  it.sequential('plans that are a file cost the cuts; requests and memory go on', async () => {
    const rig = its();
    await rig.home.run(['stop', '--now']);
    await rm(inHome('plans'), { recursive: true, force: true });
    await writeFile(inHome('plans'), 'in the way');
    await rig.home.json(['start', '--json']);
    const terminal = openTerminal(rig);
    await longTalk(rig, terminal, { topic: 'service', turns: 4 });
    const status = await rig.status();
    expect(status.nodes).toBeGreaterThan(0);
    expect(names(status, inHome('plans'))).toBe(true);
    expect(rig.standin.refused).toEqual([]);
  });
});

group('one daemon', ({ rig: its, inHome, trimmed, statusUntil }) => {
  it.sequential('serves sessions that take turns, two terminals on one session, and thirty requests at once', async () => {
    const rig = its();
    const [one, two] = [openTerminal(rig), openTerminal(rig)];
    await Promise.all([longTalk(rig, one, { topic: 'mail' }), longTalk(rig, two, { topic: 'search' })]);
    const twin = one.twin();
    for (let turn = 0; turn < 3; turn += 1) {
      await Promise.all([one.say(`left ${turn}`), twin.say(`right ${turn}`)]);
      await two.say(`third ${turn}`);
    }
    expect([await trimmed(one), await trimmed(twin), await trimmed(two)]).toEqual([true, true, true]);
    const many = Array.from({ length: 30 }, () => openTerminal(rig));
    const tries = await Promise.all(many.map((terminal, at) => terminal.say(`hello from ${at}`)));
    expect(tries).toEqual(Array(30).fill(1));
    expect(rig.standin.refused).toEqual([]);
    await rig.flush();
    const sessions = (await rig.home.json(['session', 'ls', '--json'])) as unknown[];
    expect(sessions).toHaveLength(32);
  });

  it.sequential.each([
    ['between the plan on disk and the request', 'plans', 'say'],
    ['while nodes are saved', 'memory', 'flush'],
    ['while the index is written', 'index', 'flush'],
  ] as const)('killed %s is back for the next request, and nothing is refused', async (_, folder, moment) => {
    const rig = its();
    const terminal = openTerminal(rig);
    await longTalk(rig, terminal, { topic: 'service', turns: 6 });
    if (moment === 'say') await rig.flush();
    const { pid, restarts } = (await rig.status()).engine;
    const killed = onChange(inHome(folder), () => process.kill(pid, 'SIGKILL'));
    const work = moment === 'say' ? terminal.say('and now the cut') : rig.home.run(['flush']);
    await killed;
    await work;
    const status = await statusUntil(({ engine }) => engine.state === 'healthy' && engine.pid !== pid);
    expect(status.engine.restarts).toBe(restarts + 1);
    await terminal.say('are you there?');
    await rig.flush();
    await longTalk(rig, terminal, { topic: 'queue', turns: 3 });
    expect(await trimmed(terminal)).toBe(true);
    expect((await rig.home.run(['memory', 'search', 'which port does service 3 listen on'])).stdout).toContain(
      'service',
    );
    expect(rig.standin.refused).toEqual([]);
  });
});
