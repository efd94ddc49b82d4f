import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CometError } from '../../../common/errors.ts';
import type { MemoryNode } from '../../../memory/model/node.ts';
import type { Bus } from '../../../memory/share/bus.ts';
import { createFadedFile } from '../../../memory/share/fs.ts';
import type { ShareSettings, ShareState } from '../../../memory/share/parts.ts';
import { parseArchive, renderArchive } from '../../../memory/storage/archive.ts';
import { createInMemoryBus } from '../../helpers/in-memory-bus.ts';
import { createMemoryFactFiles } from '../../helpers/memory-fact-files.ts';
import { createDisk, openRig } from '../../helpers/memory-rig.ts';
import { makeNode } from '../../helpers/nodes.ts';
import { talk } from '../../helpers/turns.ts';

const SHOP = 'github.com/acme/shop';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'comet-test-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const getNode = (number: number, over: Partial<MemoryNode>): MemoryNode =>
  makeNode({ node_id: `mem_20260301_101500_00000${number}`, project: SHOP, written_by: 'user', ...over });

/** A machine with facts; nothing is exchanged unless a test asks for it. */
async function openMachine(
  bus: Bus,
  name: string,
  {
    lines = [] as readonly string[],
    llm = 'off' as 'off' | 'local',
    passphrase = null as string | null,
    joined = [] as readonly string[],
  } = {},
) {
  const texts = new Map<string, string>();
  if (lines.length > 0) texts.set('user.md', ['---', 'scope: user', '---', '', ...lines, ''].join('\n'));
  let settings: ShareSettings = {
    ...{ url: '', scope: 'me', projects: [], trusted: [], name, raw: false, intervalMinutes: 0 },
  };
  let state: ShareState | null = null;
  const removed: string[] = [];
  const faded = createFadedFile(path.join(dir, name));
  const memory = await openRig(createDisk(), {
    llm,
    getProject: (folder) => (joined.includes(folder ?? '') ? SHOP : (folder ?? '')),
    factFiles: { ...createMemoryFactFiles(texts), getPath: (file) => `/facts/${file}` },
    share: {
      settings: () => settings,
      keepSettings: async (changed) => {
        settings = { ...settings, ...changed };
      },
      openBus: async () => bus,
      stateFile: {
        load: async () => state,
        save: async (next) => {
          state = next;
        },
        remove: async () => {
          state = null;
        },
      },
      removed: { load: async () => removed, add: async (ids) => void removed.push(...ids) },
      faded,
      ...{ passphrase: async () => passphrase, isForbidden: () => false, keepsDrafts: false, env: {} },
    },
  });
  const { sharing } = memory;
  if (sharing === null) throw new Error('no sharing');
  return {
    ...{ memory, sharing, faded },
    everyMinutes: (intervalMinutes: number) => {
      settings = { ...settings, intervalMinutes };
    },
    join: (isFirst: boolean, url = 's3://x') =>
      sharing.join({ url, scope: isFirst ? 'me' : null, projects: null, name }, isFirst, {}),
    joinTeam: (isFirst: boolean, as = name) =>
      sharing.join({ url: 's3://x', scope: 'team', projects: [SHOP], name: as }, isFirst, {}),
    remember: (number: number, over: Partial<MemoryNode>) =>
      memory.imports.importArchive(renderArchive({ nodes: [getNode(number, over)], briefs: [] }, 'jsonl')),
    known: async () =>
      parseArchive(await memory.library.exportAll('jsonl'))
        .nodes.map(({ summary, source_links: [label = 'own'] }) => `${label}: ${summary}`)
        .sort(),
    refused: async () => (await sharing.status())?.machines.map(({ name, refused }) => `${name}${refused}`),
    exchange: async (): Promise<void> => {
      await sharing.pull({});
      await sharing.push({});
    },
    facts: async () => (await memory.library.listFacts({})).facts.map(({ value }) => value).sort(),
    edit: (change: (text: string) => string) => void texts.set('user.md', change(texts.get('user.md') ?? '')),
  };
}

it('a fact that fades is removed on its machine only, one that a person removes is removed everywhere', async () => {
  const bus = createInMemoryBus();
  const fading = '- Person.Preference: short scaup answers [salience:: 0.1001]';
  const one = await openMachine(bus, 'one', { lines: [fading, '- Person.Preference: long teal answers'] });
  const two = await openMachine(bus, 'two');
  await one.join(true);
  await two.join(false);
  expect(await two.facts()).toEqual(['long teal answers', 'short scaup answers']);

  one.memory.capture.captureTurns([talk('Which port is it?', 'It is 7443.')]);
  expect(await one.memory.maintenance.flush(30_000)).toBe(true);
  expect(await one.facts()).toEqual(['long teal answers']);
  expect(await one.faded.load()).toHaveLength(1);
  for (const machine of [one, two, one, two]) await machine.exchange();
  expect(await one.faded.load()).toEqual([]);
  expect(await one.facts()).toEqual(['long teal answers']);
  expect(await two.facts()).toEqual(['long teal answers', 'short scaup answers']);

  one.edit((text) => text.replace(/.*teal.*\n/, ''));
  for (const machine of [one, two]) await machine.exchange();
  expect(await two.facts()).toEqual(['short scaup answers']);

  // Written again, it is a fact like any other.
  one.edit((text) => `${text}---\nscope: user\n---\n\n- Person.Preference: short scaup answers\n`);
  for (const machine of [one, two]) await machine.exchange();
  one.edit((text) => text.replace(/.*scaup.*\n/, '- Person.Preference: no answers\n'));
  for (const machine of [one, two]) await machine.exchange();
  expect(await two.facts()).toEqual(['no answers']);
  for (const { memory } of [one, two]) await memory.maintenance.close();
});

it('a folder that joins its remote takes sessions and facts of turns along', async () => {
  const [folder, joined] = ['/home/dev/shop', [] as string[]];
  const one = await openMachine(createInMemoryBus(), 'eleven', { llm: 'local', joined });
  one.memory.capture.captureTurns([talk('We use Redis for the cache.', 'Noted.', { projectDir: folder })]);
  expect(await one.memory.maintenance.flush(30_000)).toBe(true);
  joined.push(folder);
  const { library } = one.memory;
  const here = async () => ({
    facts: (await library.listFacts({ projectDir: folder })).facts.map(({ project, value }) => [project, value]),
    sessions: (await library.listSessions({ projectDir: folder })).length,
    counts: (await library.projectOverview(folder)).counts,
  });
  expect(await here()).toMatchObject({ facts: [], sessions: 0, counts: { sessions: 0, nodes: 0 } });
  await one.join(true);
  await one.sharing.push({});
  const facts = [[SHOP, 'Redis for the cache']];
  expect(await here()).toMatchObject({ facts, sessions: 1, counts: { sessions: 1, turns: 1, nodes: 1 } });
  expect(await one.facts()).toEqual(['Redis for the cache']);
  await one.memory.maintenance.close();
});

it('a rollback keeps what came from others since', async () => {
  const bus = createInMemoryBus();
  const [one, two] = [await openMachine(bus, 'twelve'), await openMachine(bus, 'thirteen')];
  await one.joinTeam(true);
  await two.joinTeam(false);
  await one.remember(1, { summary: 'the logo is a walrus' });
  await one.memory.library.edit(getNode(1, {}).node_id, { set: { importance: 'LOW' } });
  const [edit] = await one.memory.maintenance.listSnapshots();
  await two.remember(2, { summary: 'the port is 7443' });
  for (const machine of [two, one]) await machine.exchange();
  for (const machine of [two, one]) await machine.exchange();
  const all = ['own: the logo is a walrus', 'teammate:thirteen: the port is 7443'];
  expect(await one.known()).toEqual(all);
  await one.memory.maintenance.rollback(edit?.id ?? '');
  expect(await one.known()).toEqual(all);
  for (const { memory } of [one, two]) await memory.maintenance.close();
});

it('what is ended in a memory of a teammate stays so when the teammate changes the memory', async () => {
  const bus = createInMemoryBus();
  const [anna, bob] = [await openMachine(bus, 'fourteen'), await openMachine(bus, 'fifteen')];
  const [renew, pnpm] = ['Renew the key of the gateway by June', 'We use pnpm for all packages'];
  const stated = (open: string[]): Partial<MemoryNode> => ({
    open: open.map((text) => ({ text, origin: 'user', turn: '' })),
    decisions: [{ text: pnpm, origin: 'user', by: 'user', turn: '' }],
  });
  await anna.remember(1, { summary: 'the gateway', ...stated([renew]) });
  await anna.joinTeam(true);
  await bob.joinTeam(false);
  const listed = () => bob.memory.library.listItems({}).filter(({ kind }) => kind !== 'outcome');
  const [todo, decision] = [listed().find(({ text }) => text === renew), listed().find(({ text }) => text === pnpm)];
  await bob.memory.library.closeItems([todo?.id ?? ''], 'done');
  await bob.memory.library.closeItems([decision?.id ?? ''], 'dropped');
  expect(listed()).toEqual([]);
  await anna.remember(1, { summary: 'the gateway and its queue', ...stated([renew, 'Move the queue']) });
  await anna.exchange();
  await bob.exchange();
  expect(await bob.known()).toEqual(['teammate:fourteen: the gateway and its queue']);
  expect(listed().map(({ text }) => text)).toEqual(['Move the queue']);
  await anna.exchange();
  expect(anna.memory.library.listItems({}).map(({ text }) => text)).toEqual(expect.arrayContaining([renew, pnpm]));
  for (const { memory } of [anna, bob]) await memory.maintenance.close();
});

it('a session that begins reads what others published, and gets what another machine left off with', async () => {
  const bus = createInMemoryBus();
  const [one, two] = [await openMachine(bus, 'three', { llm: 'local' }), await openMachine(bus, 'four')];
  await one.join(true);
  await two.join(false);
  const left = 'Now move the booking queue worker over to src/queue/v2.ts and keep the old flag.';
  one.memory.capture.captureTurns([talk(left, 'Done as you said.', { sessionId: 's1' })]);
  expect(await one.memory.maintenance.flush(30_000)).toBe(true);
  await one.sharing.push({});
  const begun = async (): Promise<string> => {
    const { brief, lines } = await two.memory.recall.sessionContext('s2', '/home/dev/shop');
    return [...brief, ...lines.map(({ text }) => text)].join('\n');
  };
  expect(await begun()).toBe('');
  two.sharing.wake();
  expect(await begun()).toBe('');
  two.everyMinutes(60);
  two.sharing.wake();
  await expect.poll(begun).toContain('src/queue/v2.ts');
  for (const { memory } of [one, two]) await memory.maintenance.close();
});

it('shares elsewhere only after it took back what it published, whose removal needs its key', async () => {
  const one = await openMachine(createInMemoryBus(), 'five');
  await one.join(true);
  const machine = (await one.sharing.status())?.machine;
  await expect(one.join(true, 's3://y')).rejects.toThrow(/shares over s3:\/\/x as five \(me\).*comet-cc share leave/);
  expect(await one.sharing.status()).toMatchObject({ url: 's3://x', machine });
  await one.join(true);
  expect(await one.sharing.status()).toMatchObject({ machine });
  await one.sharing.leave({});
  expect(await one.join(true, 's3://y')).toMatchObject({ url: 's3://y' });
  await one.memory.maintenance.close();
});

it('does not join with a passphrase where the others share without one', async () => {
  const bus = createInMemoryBus();
  const [open, sealed] = [
    await openMachine(bus, 'six'),
    await openMachine(bus, 'seven', { passphrase: 'long secret' }),
  ];
  await open.join(true);
  await expect(sealed.join(false)).rejects.toThrow(/not encrypted there: join without a passphrase/);
  for (const { memory } of [open, sealed]) await memory.maintenance.close();
});

it('a member of a team who left comes back as the same one, whose memories the others take again', async () => {
  const bus = createInMemoryBus();
  const [anna, bob] = [await openMachine(bus, 'anna'), await openMachine(bus, 'bob')];
  await anna.remember(1, { summary: 'the gateway uses port 7443' });
  await anna.joinTeam(true);
  await bob.remember(2, { summary: 'the queue has 3 workers' });
  await bob.joinTeam(false);
  await anna.exchange();
  const machine = (await anna.sharing.status())?.machine;
  await anna.sharing.leave({});
  expect(await anna.sharing.status()).toBeNull();
  await bob.exchange();

  await anna.remember(1, { summary: 'the gateway uses port 9999' });
  await bob.remember(2, { summary: 'the queue has 5 workers' });
  await bob.exchange();
  await anna.joinTeam(false);
  expect(await anna.sharing.status()).toMatchObject({ machine, restarted: null });
  await bob.exchange();
  const both = (label: string, other: string) => [
    `${label}: the gateway uses port 9999`,
    `${other}: the queue has 5 workers`,
  ];
  expect(await anna.known()).toEqual(both('own', 'teammate:bob'));
  expect((await bob.known()).sort()).toEqual(both('teammate:anna', 'own').sort());
  expect([await anna.refused(), await bob.refused()]).toEqual([['bob'], ['anna']]);

  // Under another name it is still the same machine.
  await anna.sharing.leave({});
  await anna.joinTeam(false, 'ann');
  await bob.exchange();
  expect(await bob.refused()).toEqual(['ann']);
  expect((await bob.known()).sort()).toEqual(both('teammate:ann', 'own').sort());

  // A machine that is only called the same takes nothing over.
  const eve = await openMachine(bus, 'ann');
  await eve.remember(1, { summary: 'the gateway is gone' });
  await eve.joinTeam(false);
  await bob.exchange();
  expect((await bob.known()).sort()).toEqual(both('teammate:ann', 'own').sort());
  expect(await bob.refused()).toEqual(['ann', expect.stringMatching(/^ann-.*id of a memory that is not its own/)]);
  for (const { memory } of [anna, bob, eve]) await memory.maintenance.close();
});

it('a machine that left publishes what it changed since in later versions, and removes what it removed since', async () => {
  const bus = createInMemoryBus();
  const [one, two] = [await openMachine(bus, 'eight'), await openMachine(bus, 'nine')];
  await one.remember(1, { summary: 'first' });
  await one.join(true);
  await one.remember(1, { summary: 'second' });
  await one.remember(2, { summary: 'to be removed' });
  await one.exchange();
  await two.join(false);
  expect(await two.known()).toEqual(['own: second', 'own: to be removed']);
  await one.sharing.leave({});
  await one.remember(1, { summary: 'third' });
  await one.memory.library.remove([getNode(2, {}).node_id]);
  await one.join(false);
  await two.exchange();
  expect(await two.known()).toEqual(['own: third']);
  for (const { memory } of [one, two]) await memory.maintenance.close();
});

it('ends where the storage does not answer, and takes back what it published at the next try', async () => {
  const bus = createInMemoryBus();
  let isAway = false;
  const drop = async (machine: string): Promise<void> => {
    if (isAway) throw new CometError('share_failed', 's3://x cannot be used: the credentials are not accepted');
    await bus.drop(machine);
  };
  const one = await openMachine({ ...bus, drop }, 'ten');
  await one.remember(1, { summary: 'the gateway uses port 7443' });
  await one.join(true);
  const { machine = '' } = (await one.sharing.status()) ?? {};
  isAway = true;
  for (let tries = 0; tries < 2; tries += 1) {
    expect(await one.sharing.leave({})).toEqual({ problem: expect.stringContaining('not accepted') });
    expect(await one.sharing.status()).toMatchObject({ url: 's3://x', left: true });
    await expect(one.sharing.push({})).rejects.toThrow(/nothing is shared/);
  }
  isAway = false;
  expect(await one.sharing.leave({})).toEqual({ problem: '' });
  expect(await bus.machines()).toEqual([]);
  expect(await one.sharing.status()).toBeNull();
  await expect(one.sharing.leave({})).rejects.toThrow(/nothing is shared/);

  // Who left without the storage, and joins again, is not taken for a copy of itself.
  await one.join(true);
  isAway = true;
  await one.sharing.leave({});
  isAway = false;
  await one.join(true);
  expect(await one.sharing.status()).toMatchObject({ machine, restarted: null, waiting: 0, problem: '' });
  expect(await bus.read(machine, 0, 9)).toHaveLength(2);
  await one.memory.maintenance.close();
});
