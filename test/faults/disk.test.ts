import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startFaultRig } from '../helpers/fault-rig.ts';
import { createLiveRig, type LiveRig, longTalk, openTerminal, type Terminal } from '../helpers/live-rig.ts';
import { CAN_LIMIT, limit, mountSmallDisk, type SmallDisk } from '../helpers/small-disk.ts';

const CAN_MOUNT = (() => {
  const disk = mountSmallDisk(1);
  disk?.close();
  return disk !== null;
})();

// Without these, rows 51 to 53 are not proven: .ci/run is root on Linux.
it.runIf(process.platform === 'linux' && process.getuid?.() === 0)('this machine has what the rows need', () => {
  expect({ mount: CAN_MOUNT, prlimit: CAN_LIMIT }).toEqual({ mount: true, prlimit: true });
});

let undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const each of undo.reverse()) await each();
  undo = [];
});

/** Whether the next prompt went out with the plan in force. */
async function trimmed(rig: LiveRig, terminal: Terminal): Promise<boolean> {
  const { bytes } = terminal.next('go on');
  await terminal.say('go on');
  return (rig.standin.requests.at(-1)?.bytes.length ?? 0) < bytes.length / 1.2;
}

describe.runIf(CAN_MOUNT)('a disk', () => {
  let disk: SmallDisk;
  let rig: LiveRig;
  /** A conversation whose plan is in force, in a home on a disk of its own. */
  let terminal: Terminal;

  beforeAll(async () => {
    disk = mountSmallDisk(64) as SmallDisk;
    rig = await createLiveRig({ COMET_CC_HOME: disk.dir });
    terminal = openTerminal(rig);
    await longTalk(rig, terminal, { topic: 'service' });
  });

  afterAll(async () => {
    await rig.close();
    disk.close();
  });

  it('that becomes read-only costs memory only, and doctor names it', async () => {
    disk.readOnly(true);
    expect(await trimmed(rig, terminal)).toBe(true);
    await openTerminal(rig).say('a word that is not kept');
    await rig.statusUntil(({ problems }) => problems.length > 0);
    const doctor = await rig.home.run(['doctor']);
    expect(doctor).toMatchObject({ code: 1, stdout: expect.stringContaining(disk.dir) });
    expect(rig.standin.refused).toEqual([]);
    await rig.home.run(['stop', '--now']);
    const { stdout } = await rig.home.run(['doctor']);
    expect(stdout).toMatch(/^problem home .*cannot be written to \(EROFS\)$/m);
    expect(await rig.home.run(['start'])).toMatchObject({ code: 1, stderr: expect.stringContaining(disk.dir) });
    const ran = await rig.home.run(['run', 'node', '-e', 'console.log("it ran"); process.exit(6)']);
    expect(ran).toMatchObject({ code: 6, stdout: 'it ran\n' });
    disk.readOnly(false);
    await rig.home.json(['start', '--json']);
    expect(await trimmed(rig, terminal)).toBe(true);
  });

  it('that is full costs new memories only, is named, and is used again once it has room', async () => {
    await rig.flush();
    const { engine, problems: before } = await rig.status();
    expect(before).toEqual([]);
    const free = disk.fill();
    const fresh = openTerminal(rig);
    for (let at = 0; at < 3; at += 1) await fresh.say(`a word that has no room, ${at}`);
    expect(await trimmed(rig, terminal)).toBe(true);
    const status = await rig.statusUntil(({ problems }) => problems.some(({ message }) => /space/.test(message)));
    expect(status.engine).toEqual(engine);
    // Old versions of the index give room back when they go, so the disk is filled again before each look.
    const doctor = async (): Promise<string> => {
      disk.fill();
      await fresh.say('another word that has no room');
      return (await rig.home.run(['doctor'])).stdout;
    };
    await expect.poll(doctor, { timeout: 60_000 }).toMatch(/space/);
    free();
    await fresh.say('there is room again');
    await fresh.say('and on it goes');
    await rig.flush();
    // That the index was not tidied once is told until the next start.
    const { problems } = await rig.status();
    expect(problems.filter(({ message }) => !message.startsWith('the index could not be tidied'))).toEqual([]);
    const { stdout } = await rig.home.run(['memory', 'search', 'a word that has no room']);
    expect(stdout).toContain('no room');
    expect(rig.standin.refused).toEqual([]);
  });
});

describe.runIf(CAN_LIMIT)('an engine', () => {
  it('that reaches its limits for file size and open files loses memory only, and recovers', async () => {
    const rig = await createLiveRig();
    undo.push(() => rig.close());
    const terminal = openTerminal(rig);
    await longTalk(rig, terminal, { topic: 'service' });
    const { engine } = await rig.status();
    limit(engine.pid, 'fsize', 1);
    await openTerminal(rig).say('a word that does not fit');
    expect(await trimmed(rig, terminal)).toBe(true);
    const status = await rig.statusUntil(({ problems }) => problems.some(({ message }) => /EFBIG/.test(message)));
    expect(status.engine).toEqual(engine);
    limit(engine.pid, 'fsize', 'unlimited');
    await terminal.say('now it does');
    await rig.flush();
    expect((await rig.status()).problems).toEqual([]);
    expect(rig.standin.refused).toEqual([]);

    const front = await startFaultRig();
    undo.push(() => front.close());
    const { pid } = (await front.status()).engine;
    await front.intercepted('{"before":1}');
    limit(pid, 'nofile', 8);
    expect((await front.tunnelled('{"none":1}')).body.toString()).toBe('{"none":1}');
    limit(pid, 'nofile', 1_024);
    expect((await front.intercepted('{"again":1}')).body.toString()).toBe('{"again":1}');
    expect((await front.status()).engine).toMatchObject({ state: 'healthy', pid });
  });
});

it('the plans of a home that a newer program wrote are replayed, and the home is not written to', async () => {
  const rig = await createLiveRig();
  undo.push(() => rig.close());
  const terminal = openTerminal(rig);
  await longTalk(rig, terminal, { topic: 'service' });
  await rig.flush();
  await rig.home.run(['stop', '--now']);
  writeFileSync(path.join(rig.home.home, 'schema.json'), '{"schema":99}\n');
  const before = kept(rig.home.home);
  await rig.home.json(['start', '--json']);
  expect(await trimmed(rig, terminal)).toBe(true);
  const fresh = openTerminal(rig);
  const { bytes } = fresh.next('a word for nobody');
  await fresh.say('a word for nobody');
  expect(rig.standin.requests.at(-1)?.bytes.equals(Buffer.from(bytes))).toBe(true);
  await fresh.say('nor this one');
  const status = await rig.status();
  expect(status.problems).toContainEqual({
    file: 'memory',
    message: expect.stringMatching(/newer comet-cc.*schema 99/),
  });
  expect((await rig.home.run(['doctor'])).stdout).toContain('newer comet-cc');
  expect((await rig.home.run(['memory', 'search', 'service'])).stderr).toContain('newer comet-cc');
  await rig.home.run(['stop', '--now']);
  expect(kept(rig.home.home)).toEqual(before);
  expect(rig.standin.refused).toEqual([]);
});

/** What is kept for good, byte for byte. */
function kept(home: string): Map<string, string> {
  const files = readdirSync(home, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(home, path.join(entry.parentPath, entry.name)))
    .filter((name) => !/^(run|logs)\//.test(name));
  return new Map(files.sort().map((name) => [name, readFileSync(path.join(home, name), 'latin1')]));
}
