import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { noFacts } from '../../../../bench/no-files.ts';
import { runAtOnce } from '../../../../common/async.ts';
import { CometError } from '../../../../common/errors.ts';
import { isDraft, type MemoryNode, redirectTo } from '../../../../memory/model/node.ts';
import type { JournalTurn } from '../../../../memory/model/turn.ts';
import { type LibraryPages, readShelf } from '../../../../memory/pages/library-pages.ts';
import type { Bus } from '../../../../memory/share/bus.ts';
import type { ShareRules } from '../../../../memory/share/filter.ts';
import { getMachines } from '../../../../memory/share/join.ts';
import { createLooked, newState, type ShareState } from '../../../../memory/share/parts.ts';
import { taskKey } from '../../../../memory/share/row.ts';
import { openShare } from '../../../../memory/share/service.ts';
import { createSharedPages } from '../../../../memory/share-pages.ts';
import type { PageRewrite } from '../../../../memory/storage/page-files.ts';
import type { TaskText } from '../../../../memory/tasks/task-files.ts';
import { createRedactor } from '../../../../redact/index.ts';
import { createInMemoryBus } from '../../../helpers/in-memory-bus.ts';
import { makeNode } from '../../../helpers/nodes.ts';

const SHOP = 'github.com/acme/shop';
const redactor = createRedactor({ markKey: randomBytes(32) });
const getNode = (number: number, over: Partial<MemoryNode> = {}): MemoryNode =>
  makeNode({ node_id: `mem_20260301_101500_00000${number}`, project: SHOP, written_by: 'user', ...over });

const getStem = ({ name }: { readonly name: string }): string => path.posix.basename(name, '.md');
const taskText = (title: string, project = '', day = '2026-03-01'): string =>
  `---\ntitle: ${title}\ncreated: ${day}\nproject: ${project}\n---\n`;

/** A library in memory. */
function createFolder() {
  const texts = new Map<string, string>();
  return {
    texts,
    topicPages: {
      shelf: async () => ({ ...runAtOnce(readShelf(texts, '/library', [])), isWritable: true }),
      files: {
        dir: '/library',
        async replace({ name, before, after }: PageRewrite) {
          if ((texts.get(name) ?? null) !== before) return false;
          if (after === null) texts.delete(name);
          else texts.set(name, after);
          return true;
        },
      },
    } as unknown as LibraryPages,
  };
}

/** A machine: its memory and what it keeps between runs. */
const facts = { texts: async () => ({ files: [], isWhole: false }), rewrite: async () => {} };

function createHome(
  bus: Bus,
  { scope = 'me' as ShareRules['scope'], passphrase = null as string | null, aheadMs = 0, raw = false } = {},
) {
  const nodes = new Map<string, MemoryNode>();
  const turns = new Map<string, JournalTurn>();
  const tasks = new Map<string, TaskText>();
  const forgotten = new Set<string>();
  const files = createFolder();
  let saved: ShareState | null = null;
  const rules = {
    scope,
    projects: scope === 'me' ? [] : [SHOP],
    raw,
    isForbidden: () => false,
    isWaiting: isDraft,
    getKey: String,
  };
  const memory = {
    nodes: () => [...nodes.values()],
    revision: () => 0,
    save: async (fresh: readonly MemoryNode[]) => fresh.forEach((node) => void nodes.set(node.node_id, node)),
    remove: async (ids: readonly string[]) => ids.forEach((id) => void nodes.delete(id)),
    getTurns: async (sessionId: string) =>
      [...turns.values()]
        .filter((turn) => turn.sessionId === sessionId)
        .map((turn) => ({
          turn,
          nodeIds: [...nodes.values()].filter((n) => n.turns.includes(turn.turnId)).map((n) => n.node_id),
        })),
    saveTurns: async (fresh: readonly JournalTurn[]) => fresh.forEach((turn) => void turns.set(turn.turnId, turn)),
    tasks: async () => [...tasks.values()],
    saveTask: async (file: TaskText) => void tasks.set(getStem(file), file),
    removeTask: async (name: string) => void tasks.delete(name),
    isForgotten: (turnId: string) => forgotten.has(turnId),
    ...createSharedPages({
      ...files,
      redactor,
      facts,
      factFiles: noFacts,
      clock: { now: () => Date.parse('2026-03-02') },
    }),
  };
  const stateFile = {
    load: async () => saved,
    save: async (state: ShareState) => {
      saved = structuredClone(state);
    },
    remove: async () => {
      saved = null;
    },
  };
  const looked = createLooked();
  const clock = { ms: 0 };
  const gone: string[] = [];
  const removed = { load: async () => gone, add: async (ids: readonly string[]) => void gone.push(...ids) };
  const signal = new AbortController().signal;
  const others = {
    ...{ stateFile, removed, memory, redactor, rules, passphrase },
    trusted: [],
    now: () => Date.now() + aheadMs + clock.ms,
    signal,
  };
  const member = { url: 's3://team', scope, name: 'anna' };
  const open = (over: Bus = bus) => openShare({ bus: over, ...others }, saved ?? newState(member, passphrase !== null));
  return {
    ...{ nodes, turns, tasks, rules, removed, memory, clock, texts: files.texts },
    /** Opens again within the same process, which remembers what it has looked at. */
    openAgain: (over: Bus = bus) =>
      openShare({ bus: over, ...others, looked }, saved ?? newState(member, passphrase !== null)),
    write: (name: string, text: string) => void tasks.set(getStem({ name }), { name, text }),
    open,
    summaries: () => [...nodes.values()].map(({ summary }) => summary).sort(),
    state: () => saved as unknown as ShareState,
    restore: (state: ShareState) => {
      saved = state;
    },
    async forget(nodeId: string): Promise<void> {
      await removed.add([nodeId]);
      for (const turnId of nodes.get(nodeId)?.turns ?? []) forgotten.add(turnId);
      nodes.delete(nodeId);
    },
    async sync(): Promise<void> {
      const share = await open();
      await share.pull();
      await share.push();
    },
  };
}
type Home = ReturnType<typeof createHome>;

async function syncAll(...homes: Home[]): Promise<void> {
  for (let round = 0; round < 3; round += 1) for (const home of homes) await home.sync();
}

const add = (home: Home, ...nodes: MemoryNode[]) => nodes.forEach((node) => void home.nodes.set(node.node_id, node));

describe('three machines of one person', () => {
  it.each([null, 'correct horse'])('come to hold the same (passphrase: %s)', async (passphrase) => {
    const bus = createInMemoryBus();
    const homes = [1, 2, 3].map(() => createHome(bus, { passphrase })) as [Home, Home, Home];
    for (const [at, home] of homes.entries()) add(home, getNode(at, { summary: `from ${at}` }));
    await syncAll(...homes);
    for (const home of homes) expect(home.summaries()).toEqual(['from 0', 'from 1', 'from 2']);
    const rows = (await Promise.all((await bus.machines()).map((machine) => bus.read(machine, 0, 99)))).flat();
    expect(rows).toHaveLength(6);
    expect(JSON.stringify(rows).includes('from 1')).toBe(passphrase === null);
  });

  it('are listed as long as they share', async () => {
    const bus = createInMemoryBus();
    const [one, two, three] = [createHome(bus), createHome(bus), createHome(bus)];
    add(one, getNode(1));
    await syncAll(one, two, three);
    const list = () => getMachines(one.state(), []).map(({ machine }) => machine);
    expect(list().sort()).toEqual([two, three].map((home) => home.state().machine).sort());
    await bus.drop(two.state().machine);
    await one.sync();
    expect(list()).toEqual([three.state().machine]);
    await two.sync();
    await one.sync();
    expect(list()).toContain(two.state().machine);
  });

  it('remove everywhere, in the bucket too, and bring nothing back', async () => {
    const bus = createInMemoryBus();
    const [one, two, three] = [createHome(bus), createHome(bus), createHome(bus)];
    add(one, getNode(1, { summary: 'to be forgotten' }), getNode(2, { summary: 'stays' }));
    await syncAll(one, two, three);
    await two.forget(getNode(1).node_id);
    await syncAll(one, two, three);
    for (const home of [one, two, three]) expect(home.summaries()).toEqual(['stays']);
    const rows = await Promise.all((await bus.machines()).map((machine) => bus.read(machine, 0, 99)));
    expect(JSON.stringify(rows)).not.toContain('to be forgotten');
    for (const home of [one, two, three]) expect(JSON.stringify(home.state())).not.toContain('to be forgotten');
  });

  it('leave nothing in the bucket of what a person takes out of a memory, there or on another machine', async () => {
    const bus = createInMemoryBus();
    const [one, two, three] = [createHome(bus), createHome(bus), createHome(bus)];
    add(one, getNode(1, { summary: 'the first gate code' }), getNode(2, { summary: 'the second gate code' }));
    await syncAll(one, two);
    add(one, getNode(1, { summary: 'one took it out', author: { by: 'user' } }));
    add(two, getNode(2, { summary: 'two took it out', author: { by: 'user' } }));
    await syncAll(one, two, one, two);
    const rows = await Promise.all((await bus.machines()).map((machine) => bus.read(machine, 0, 99)));
    expect(JSON.stringify(rows)).not.toContain('gate code');
    expect(await (await one.open()).push()).toBe(0);
    // Both are the first publisher of what one brought to the other as an export.
    for (const home of [one, two]) {
      add(home, getNode(3, { summary: 'the third gate code', author: { by: 'user' } }));
      await (await home.open()).push();
    }
    await syncAll(one, two, one);
    add(two, getNode(3, { summary: 'taken out', author: { by: 'user' } }));
    await syncAll(two, one, two, one);
    const rowsSent = (): number[] => [one, two].map((home) => home.state().next);
    const before = rowsSent();
    await syncAll(one, two, one, two);
    expect(rowsSent()).toEqual(before);
    await one.forget(getNode(3).node_id);
    await syncAll(one, two);
    // What the first publisher said stays when the other machine leaves.
    await bus.drop(two.state().machine);
    await syncAll(three, one);
    for (const home of [one, two, three]) expect(home.summaries()).toEqual(['one took it out', 'two took it out']);
  });

  it.each([null, 'correct horse'])('get verbatim turns where that is set (passphrase: %s)', async (passphrase) => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus, { passphrase, raw: true }), createHome(bus, { passphrase, raw: true })];
    const said = (text: string): JournalTurn => ({
      ...{
        key: text.slice(0, 9),
        turnId: `turn ${text.slice(0, 9)}`,
        sessionId: 's',
        projectDir: '/home/anna/x',
        model: 'm',
        atMs: 7,
      },
      ...{ seq: 0, project: SHOP, redacted: false },
      messages: [{ role: 'user', content: JSON.stringify(text), sha256: 'ab' }],
    });
    for (const turn of [said('first'), said('second'), said(randomBytes(600_000).toString('hex'))]) {
      add(one, getNode(one.nodes.size, { session_id: 's', turns: [turn.turnId] }));
      one.turns.set(turn.turnId, turn);
    }
    await syncAll(one, two);
    const bare = (turn: JournalTurn): JournalTurn => ({ ...turn, projectDir: null });
    expect([...two.turns.values()]).toEqual([bare(said('first')), bare(said('second'))]);
    expect(await bus.read(two.state().machine, 0, 99)).toHaveLength(1);

    await one.forget(getNode(0).node_id);
    await syncAll(one, two);
    const own = await bus.read(one.state().machine, 0, 99);
    // The card, two memories, a turn and a tombstone.
    expect(own.map(({ sequence }) => sequence)).toEqual([0, 2, 3, 5, 6]);
    expect(await (await one.open()).push()).toBe(0);

    Object.assign(one.rules, { raw: false });
    await one.sync();
    expect((await bus.read(one.state().machine, 0, 99)).map(({ sequence }) => sequence)).toEqual([0, 2, 3, 6]);
  });

  it('have the same tasks, and a change that was not exchanged yet is not lost', async () => {
    const bus = createInMemoryBus();
    const [one, two, three] = [createHome(bus), createHome(bus), createHome(bus)];
    const texts = (home: Home) =>
      [...home.tasks.values()].map(({ name, text }) => `${name} ${/title: (.*)/.exec(text)?.[1]}`).sort();
    one.write('active/a.md', taskText('water'));
    two.write('active/b.md', taskText('mow it'));
    await syncAll(one, two, three);
    for (const home of [one, two, three]) expect(texts(home)).toEqual(['active/a.md water', 'active/b.md mow it']);

    one.write('active/a.md', taskText('water twice'));
    await one.sync();
    two.tasks.delete('a');
    two.write('done/2026-03/a.md', taskText('water'));
    await syncAll(two, three, one);
    for (const home of [one, two, three])
      expect(texts(home)).toEqual(['active/b.md mow it', 'done/2026-03/a.md water']);
    expect(await (await one.open()).push()).toBe(0);
    Object.assign(two.rules, { isForbidden: () => true });
    await two.sync();
    expect((await bus.read(two.state().machine, 0, 99)).map(({ sequence }) => sequence)).toEqual([0]);

    await three.removed.add([taskKey({ name: 'b', created: new Date('2026-03-01').toISOString() })]);
    three.tasks.delete('b');
    await syncAll(three, one, two);
    for (const home of [one, two, three]) expect(texts(home)).toEqual(['done/2026-03/a.md water']);
    const rows = await Promise.all((await bus.machines()).map((machine) => bus.read(machine, 0, 99)));
    // A key or signature in base64 has no space.
    expect(JSON.stringify(rows)).not.toContain('mow it');
  });

  it('get a task that is made again under the name of a removed one', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus), createHome(bus)];
    one.write('active/a.md', taskText('water', '', '2026-03-01T08:00:00.000Z'));
    await syncAll(one, two);
    await one.removed.add([taskKey({ name: 'a', created: '2026-03-01T08:00:00.000Z' })]);
    one.tasks.delete('a');
    one.write('active/a.md', taskText('water again', '', '2026-03-01T09:00:00.000Z'));
    await syncAll(one, two);
    for (const home of [one, two]) expect(home.tasks.get('a')?.text).toContain('water again');
  });

  it('take verbatim turns over only where that is set, then also those that were passed over', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus, { raw: true }), createHome(bus)];
    const turn: JournalTurn = {
      ...{ key: 'k', turnId: 'turn k', sessionId: 's', projectDir: null, model: 'm', atMs: 7, seq: 0 },
      ...{ project: SHOP, redacted: false, messages: [{ role: 'user', content: '"first"', sha256: 'ab' }] },
    };
    add(one, getNode(1, { session_id: 's', turns: [turn.turnId] }));
    one.turns.set(turn.turnId, turn);
    await syncAll(one, two);
    expect([two.nodes.size, two.turns.size]).toEqual([1, 0]);
    Object.assign(two.rules, { raw: true });
    await two.sync();
    expect([...two.turns.values()]).toEqual([turn]);
    expect(await (await two.open()).push()).toBe(0);
  });

  it('read large rows a few at a time, and lose none', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus, { raw: true }), createHome(bus, { raw: true })];
    for (let at = 0; at < 140; at += 1) {
      const content = JSON.stringify(randomBytes(75_000).toString('hex'));
      const turn: JournalTurn = {
        ...{ key: `k${at}`, turnId: `turn ${at}`, sessionId: 's', projectDir: null, model: 'm', atMs: 7, seq: at },
        ...{ project: SHOP, redacted: false, messages: [{ role: 'user', content, sha256: 'ab' }] },
      };
      one.turns.set(turn.turnId, turn);
    }
    add(one, getNode(1, { session_id: 's', turns: [...one.turns.keys()] }));
    await one.sync();
    const limits: number[] = [];
    const counted: Bus = {
      ...bus,
      read: async (machine, from, limit) => {
        limits.push(limit);
        return bus.read(machine, from, limit);
      },
    };
    await (await two.open(counted)).pull();
    expect(two.turns.size).toBe(140);
    expect(limits[0]).toBe(100);
    expect(limits.length).toBeGreaterThan(1);
    for (const limit of limits.slice(1)) expect(limit * 100_000).toBeLessThan(10_000_000);
  });

  it('keep two tasks of one name apart, and tasks of other projects here', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus), createHome(bus)];
    one.write('active/a.md', taskText('water'));
    two.write('active/a.md', taskText('mow', '', '2026-03-02'));
    Object.assign(one.rules, { isForbidden: (project: string) => project === 'secret' });
    one.write('active/c.md', taskText('hide', 'secret'));
    await syncAll(one, two);
    one.write('active/a.md', taskText('water twice'));
    await syncAll(one, two);
    expect(one.tasks.get('a')?.text).toContain('water twice');
    expect(two.tasks.get('a')?.text).toContain('mow');
    expect(two.tasks.has('c')).toBe(false);
    expect(Object.values(two.state().refused)).toEqual(['taken_name']);
  });

  it('remove nothing elsewhere where a memory is lost or withheld', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus), createHome(bus)];
    add(one, getNode(1), getNode(2));
    await syncAll(one, two);
    two.nodes.clear();
    add(one, getNode(2, { summary: 'now <private>hidden' }));
    await syncAll(two, one);
    expect(one.nodes.size).toBe(2);
    const rows = await bus.read(one.state().machine, 0, 99);
    expect(rows.map(({ sequence }) => sequence)).toEqual([0, 1]);
  });

  it('agree where their clocks are an hour apart', async () => {
    const bus = createInMemoryBus();
    const [late, early] = [createHome(bus, { aheadMs: -1_800_000 }), createHome(bus, { aheadMs: 1_800_000 })];
    const at = (ms: number): string => new Date(Date.now() + ms).toISOString();
    add(late, getNode(1, { created_at: at(-1_800_000) }));
    add(early, getNode(2, { created_at: at(1_800_000) }));
    await syncAll(late, early);
    add(late, getNode(2, { summary: 'the late one says the last' }));
    await syncAll(late, early, late);
    await early.forget(getNode(1).node_id);
    await syncAll(early, late);
    for (const home of [late, early]) expect(home.summaries()).toEqual(['the late one says the last']);
  });

  it('agree after two of them edited the same node', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus), createHome(bus)];
    add(one, getNode(1));
    await syncAll(one, two);
    add(one, getNode(1, { summary: 'one says' }));
    add(two, getNode(1, { summary: 'two says' }));
    await (await one.open()).push();
    await (await two.open()).push();
    await syncAll(one, two);
    expect(one.summaries()).toEqual(two.summaries());
    expect(one.summaries()[0]).toMatch(/says/);
  });

  it('lose nothing where each merged the keeper of the other', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus), createHome(bus)];
    const [left, right] = [getNode(1, { summary: 'left' }), getNode(2, { summary: 'right' })];
    add(one, left, right);
    await syncAll(one, two);
    const at = '2026-03-02T00:00:00.000Z';
    const merged = (node: MemoryNode, into: MemoryNode): MemoryNode =>
      ({ ...redirectTo(node, into.node_id, at), superseded_as: 'merged' }) as MemoryNode;
    add(one, { ...left, summary: 'left and right' }, merged(right, left));
    add(two, { ...right, summary: 'right and left' }, merged(left, right));
    await (await one.open()).push();
    await (await two.open()).push();
    await syncAll(one, two, one, two);
    expect([...one.nodes.values()]).toEqual([...two.nodes.values()]);
    const text = one.summaries().join();
    for (const word of ['left', 'right']) expect(text).toContain(word);
    expect(one.nodes.get(left.node_id)?.kind === 'redirect' && one.nodes.get(right.node_id)?.kind === 'redirect').toBe(
      false,
    );
    expect(await (await one.open()).push()).toBe(0);
    expect(await (await two.open()).push()).toBe(0);
  });

  it('send nothing where nothing changed', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus), createHome(bus)];
    add(one, getNode(1));
    await syncAll(one, two);
    expect(await (await two.open()).push()).toBe(0);
    expect(await (await one.open()).push()).toBe(0);
  });
});

/** Counts what is read of the bus. */
function countedBus(bus: Bus) {
  const reads: string[] = [];
  const note =
    <A extends unknown[], T>(name: string, work: (...args: A) => Promise<T>) =>
    (...args: A): Promise<T> => {
      reads.push(name);
      return work(...args);
    };
  return { bus: { ...bus, read: note('read', bus.read), last: note('last', bus.last) }, taken: () => reads.splice(0) };
}

describe('an exchange without news', () => {
  it('reads no log again, until one has changed, or an hour has passed', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus), createHome(bus)];
    const counted = countedBus(bus);
    const exchange = async (): Promise<string[]> => {
      const share = await two.openAgain(counted.bus);
      await share.pull();
      await share.push();
      return counted.taken();
    };
    add(one, getNode(1));
    await one.sync();
    expect(await exchange()).toEqual(['read', 'last']);
    expect(await exchange()).toEqual(['last']);
    expect(await exchange()).toEqual([]);
    add(one, getNode(2));
    await one.sync();
    expect(await exchange()).toEqual(['read']);
    expect(two.nodes.size).toBe(2);
    expect(await exchange()).toEqual([]);
    two.clock.ms += 3_600_001;
    expect(await exchange()).toEqual(['read', 'last']);
    // Somebody emptied the bucket: both are published again.
    for (const machine of await bus.machines()) await bus.drop(machine);
    expect(await exchange()).toEqual(['last']);
    await one.sync();
    expect(await exchange()).toEqual(['read', 'read', 'last']);
    expect((await bus.machines()).sort()).toEqual([one.state().machine, two.state().machine].sort());
  });

  it('reads a log again whose publisher is trusted now, or whose turns are wanted', async () => {
    const bus = createInMemoryBus();
    const [anna, bob] = [createHome(bus, { scope: 'team' }), createHome(bus, { scope: 'team' })];
    const counted = countedBus(bus);
    add(anna, getNode(1));
    await anna.sync();
    for (let round = 0; round < 2; round += 1) await (await bob.openAgain(counted.bus)).pull();
    expect(counted.taken()).toEqual(['read']);
    const share = await bob.openAgain(counted.bus);
    await share.readAgain(anna.state().machine);
    await share.pull();
    expect(counted.taken()).toContain('read');
    Object.assign(bob.rules, { raw: true });
    await (await bob.openAgain(counted.bus)).pull();
    expect(counted.taken()).toContain('read');
  });

  it('reads again what waits for the right passphrase', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus, { passphrase: 'right' }), createHome(bus, { passphrase: 'wrong' })];
    const counted = countedBus(bus);
    add(one, getNode(1));
    await one.sync();
    for (let round = 0; round < 2; round += 1) {
      await (await two.openAgain(counted.bus)).pull();
      expect(counted.taken()).toEqual(['read']);
    }
  });
});

describe('a fault', () => {
  it('after a write that was not noted doubles nothing', async () => {
    const bus = createInMemoryBus();
    const home = createHome(bus);
    add(home, getNode(1));
    const torn = {
      ...bus,
      append: async (...args: Parameters<Bus['append']>) => {
        await bus.append(...args);
        throw new Error('connection reset');
      },
    };
    await expect((await home.open(torn)).push()).rejects.toThrow('connection reset');
    const { machine } = home.state();
    for (let tries = 0; tries < 2; tries += 1) {
      await home.sync();
      expect(home.state().machine).toBe(machine);
      expect(await bus.read(machine, 0, 99)).toHaveLength(2);
    }
  });

  it('of one log keeps no other back, and is named; where nothing answers, no other is tried', async () => {
    const bus = createInMemoryBus();
    const [one, two, three] = [createHome(bus), createHome(bus), createHome(bus)];
    for (const [at, home] of [one, two].entries()) {
      add(home, getNode(at + 1));
      await (await home.open()).push();
    }
    const { machine } = one.state();
    let asked = 0;
    const damaged: Bus = {
      ...bus,
      async stamp(each) {
        asked += 1;
        if (each === machine) throw new CometError('share_failed', 'a manifest is empty');
        return await bus.stamp(each);
      },
    };
    await expect((await three.open(damaged)).pull()).rejects.toThrow(`${machine} cannot be read: a manifest is empty`);
    expect([three.summaries(), asked]).toEqual([[getNode(2).summary], 2]);
    asked = 0;
    const machines = () => (asked > 0 ? Promise.reject(new Error('no route')) : bus.machines());
    await expect((await three.open({ ...damaged, machines })).pull()).rejects.toThrow('no route');
    expect(asked).toBe(1);
    await three.sync();
    expect(three.nodes.size).toBe(2);
  });

  it('of a home restored from a backup makes it a new machine and loses nothing', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus), createHome(bus)];
    add(one, getNode(1));
    await one.sync();
    const backup = structuredClone(one.state());
    add(one, getNode(2));
    await one.sync();
    one.restore(backup);
    one.nodes.delete(getNode(2).node_id);
    add(one, getNode(3));
    await syncAll(one, two);
    expect(one.state().machine).not.toBe(backup.machine);
    expect(one.state().restarted).toMatchObject({ why: 'copy' });
    for (const home of [one, two])
      expect([...home.nodes.keys()].sort()).toEqual([1, 2, 3].map((n) => getNode(n).node_id));
  });

  it('is not what an erased last row is: nothing is published again', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus), createHome(bus)];
    add(one, getNode(1));
    await syncAll(one, two);
    add(two, getNode(1, { summary: 'edited' }));
    await syncAll(two, one);
    await one.forget(getNode(1).node_id);
    await syncAll(one, two);
    expect((await bus.read(two.state().machine, 0, 99)).map(({ sequence }) => sequence)).toEqual([0]);
    expect(await (await two.open()).push()).toBe(0);
    expect(two.state().restarted).toBeNull();
    add(two, getNode(2));
    await syncAll(two, one);
    expect((await bus.read(two.state().machine, 0, 99)).map(({ sequence }) => sequence)).toEqual([0, 2]);
    expect([...one.nodes.keys()]).toEqual([getNode(2).node_id]);
  });

  it('of an emptied bucket publishes everything again', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus), createHome(bus)];
    add(one, getNode(1));
    await one.sync();
    await bus.drop(one.state().machine);
    expect(one.state().restarted).toBeNull();
    await syncAll(one, two);
    expect(two.nodes.size).toBe(1);
    expect(one.state().restarted).toMatchObject({ why: 'lost' });
  });
});

describe('a team', () => {
  it('gets nodes of the project as external text, and cannot remove or replace them', async () => {
    const bus = createInMemoryBus();
    const [anna, eve] = [createHome(bus, { scope: 'team' }), createHome(bus, { scope: 'team' })];
    add(anna, getNode(1), getNode(2, { project: '/home/anna/diary' }));
    await syncAll(anna, eve);
    expect([...eve.nodes.values()]).toMatchObject([{ node_id: getNode(1).node_id, origin: 'external' }]);
    await eve.forget(getNode(1).node_id);
    await syncAll(eve, anna);
    expect(anna.nodes.size).toBe(2);
    expect(anna.nodes.get(getNode(1).node_id)).toEqual(getNode(1));
  });
});

const page = (lines: readonly string[], topic = 'gateway', over = ''): string =>
  `---\ntitle: Gateway (shop)\nscope: project\nproject: ${SHOP}\ntopic: ${topic}\nupdated: 2026-03-01\n${over}---\n\n# Gateway (shop)\n\n${lines.map((line) => `${line}\n`).join('')}`;

const OURS = '- The gateway listens on 7443 ([mem_20260301_101500_000001](../x.md#a))';

describe('what a person writes into pages', () => {
  it('is on every machine, in its section, and lines of memory are not', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus), createHome(bus)];
    one.texts.set(
      'topics/shop-gateway.md',
      page(['## Values', '', OURS, '- ask Ada first', '', '## Notes', '', 'By hand.']),
    );
    one.texts.set(
      'plans/next year/move.md',
      '# Move\n\n1. pack\n2. drive\n\n```sh\nrm -r\n\nmv a b\n```\n\n## Later\n\nunpack\n',
    );
    one.texts.set('topics/user_profile.md', '# Me\n\nTea, no coffee.\n');
    two.texts.set('topics/gateway.md', page(['## Values', '', OURS]));
    await syncAll(one, two);
    expect(two.texts.get('plans/next year/move.md')).toBe(one.texts.get('plans/next year/move.md'));
    expect(two.texts.get('topics/gateway.md')).toBe(
      page(['## Values', '', '- ask Ada first', OURS, '', '## Notes', '', 'By hand.']),
    );
    expect(two.texts.get('topics/user_profile.md')).toContain('Tea, no coffee.');
    expect(JSON.stringify(await bus.read(one.state().machine, 0, 99))).not.toContain('listens on 7443');
    for (const home of [one, two]) expect(await (await home.open()).push()).toBe(0);
  });

  it('goes everywhere when it is taken out, and comes again when it is written again', async () => {
    const bus = createInMemoryBus();
    const [one, two, three] = [createHome(bus), createHome(bus), createHome(bus)];
    const texts = (text: string) =>
      [one, two, three].map((home) => home.texts.get('plans/a.md')?.includes(text) === true);
    one.texts.set('plans/a.md', 'the pelican\n\nthe heron\n');
    await syncAll(one, two, three);
    expect(texts('pelican')).toEqual([true, true, true]);
    two.texts.set('plans/a.md', 'the heron\n');
    await syncAll(two, one, three);
    expect(texts('pelican')).toEqual([false, false, false]);
    expect(texts('heron')).toEqual([true, true, true]);
    for (const machine of await bus.machines())
      expect(JSON.stringify(await bus.read(machine, 0, 99))).not.toContain('pelican');
    for (const home of [one, two, three]) expect(JSON.stringify(home.state())).not.toContain('pelican');
    three.texts.set('plans/a.md', 'the heron\n\nthe pelican\n');
    await syncAll(three, one, two);
    expect(texts('pelican')).toEqual([true, true, true]);
    // A library that is lost removes nothing elsewhere.
    one.texts.clear();
    await syncAll(one, two, three);
    expect(texts('heron')).toEqual([false, true, true]);
  });

  it('stays in both forms where two machines changed it apart, and says so until one is left', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus), createHome(bus)];
    one.texts.set('plans/a.md', '# Plan\n\nship on monday\n\nthe end\n');
    await syncAll(one, two);
    one.texts.set('plans/a.md', '# Plan\n\nship on tuesday\n\nthe end\n');
    two.texts.set('plans/a.md', '# Plan\n\nship on friday\n\nthe end\n');
    await syncAll(one, two);
    for (const home of [one, two]) {
      const text = home.texts.get('plans/a.md') ?? '';
      for (const day of ['tuesday', 'friday']) expect(text).toContain(`ship on ${day}`);
      expect(text).not.toContain('monday');
      expect(await home.memory.changedApart()).toEqual([{ file: 'plans/a.md', blocks: 1 }]);
      expect(await (await home.open()).push()).toBe(0);
    }
    one.texts.set('plans/a.md', '# Plan\n\nship on tuesday\n\nthe end\n');
    await syncAll(one, two);
    expect(two.texts.get('plans/a.md')).toBe(one.texts.get('plans/a.md'));
    expect(await two.memory.changedApart()).toEqual([]);
  });

  it('stays where it is private or of another project', async () => {
    const bus = createInMemoryBus();
    const [one, two] = [createHome(bus), createHome(bus)];
    Object.assign(one.rules, { isForbidden: (project: string) => project === 'secret' });
    one.texts.set('plans/a.md', '<private>mine</private> and this\n\nours\n');
    one.texts.set('topics/b.md', page(['hidden'], 'b').replaceAll(SHOP, 'secret'));
    await syncAll(one, two);
    expect([...two.texts.values()]).toEqual(['ours\n']);
    Object.assign(one.rules, { isForbidden: () => true });
    await one.sync();
    expect(await bus.read(one.state().machine, 0, 99)).toHaveLength(1);
    await two.sync();
    expect([...two.texts.values()]).toEqual(['ours\n']);
  });

  it('reaches a team as what a teammate says, of named projects alone, in no page of theirs', async () => {
    const bus = createInMemoryBus();
    const [anna, bob] = [createHome(bus, { scope: 'team' }), createHome(bus, { scope: 'team' })];
    anna.texts.set(
      'topics/gateway.md',
      page(['## Notes', '', OURS, '- ask Ada first', '', '## Reported', '', '- a claim']),
    );
    anna.texts.set('topics/user_profile.md', '# Me\n\nTea.\n');
    anna.texts.set('plans/a.md', 'mine\n');
    bob.texts.set('topics/gateway.md', page(['## Notes', '', OURS]));
    await syncAll(anna, bob);
    expect([...bob.nodes.values()]).toMatchObject([
      { origin: 'external', project: SHOP, summary: 'Gateway (shop), Notes: - ask Ada first' },
    ]);
    expect([...bob.nodes.values()][0]?.source_links[0]).toMatch(/^teammate:/);
    expect(bob.texts.get('topics/gateway.md')).toBe(page(['## Notes', '', OURS]));
    expect(bob.texts.size).toBe(1);
    anna.texts.set('topics/gateway.md', page(['## Notes', '', OURS]));
    await syncAll(anna, bob);
    expect(bob.nodes.size).toBe(0);
    expect(JSON.stringify(await bus.read(anna.state().machine, 0, 99))).not.toContain('Ada');
  });
});
