import { cp, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { renderArchive } from '../../memory/storage/archive.ts';
import { projectSlug } from '../../memory/storage/paths.ts';
import { CLI, createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { makeNode } from '../helpers/nodes.ts';
import { isStored, type S3Server, startS3Server } from '../helpers/s3-server.ts';
import { hasTmux, openTmux } from '../helpers/tmux.ts';

const SHOP = 'github.com/acme/shop';
const SECRET = `ghp_${'a1B2'.repeat(9)}`;

let folder: string;
let server: S3Server;
let homes: TestHome[];
let places = 0;

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'cc-share-'));
  server = await startS3Server(path.join(folder, 'buckets'));
});

afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

beforeEach(() => {
  homes = [];
});

afterEach(() => Promise.all(homes.map((home) => home.close())));

const freshUrl = (): string => {
  places += 1;
  return `${server.uri}/place-${places}`;
};

type Env = Readonly<Record<string, string>>;

/** A machine with a clone of the shop; nothing is exchanged unless a test asks for it. */
async function openMachine(env: Env = {}, opened = homes): Promise<TestHome> {
  const home = await createHomeWithCerts({
    ...(server.env as Record<string, string>),
    ...{ COMET_CC_SHARE_INTERVAL_MINUTES: '0', ...env },
  });
  opened.push(home);
  await home.run(['start']);
  await mkdir(path.join(home.user, 'shop', '.git'), { recursive: true });
  const config = `[remote "origin"]\n\turl = git@github.com:acme/shop.git\n`;
  await writeFile(path.join(home.user, 'shop', '.git', 'config'), config);
  return home;
}

/** Several at once: each start waits for a process of its own. */
const openMachines = async <const E extends readonly Env[]>(...envs: E) =>
  (await Promise.all(envs.map((env) => openMachine(env)))) as { [K in keyof E]: TestHome };

/** A machine whose clock is off by so many hours: everything but native code reads it. */
const clockOff = (hours: number): Env => {
  const ms = hours * 3_600_000;
  const off = `class extends D{constructor(...a){if(a.length)super(...a);else super(D.now()+${ms})}static now(){return D.now()+${ms}}}`;
  const source = encodeURIComponent(`const D=Date;globalThis.Date=${off};`);
  return { NODE_OPTIONS: `--import=data:text/javascript,${source}` };
};

const getShop = (home: TestHome) => ({ cwd: path.join(home.user, 'shop') });
const share = (home: TestHome, ...args: string[]) => home.json(['share', ...args, '--json'], getShop(home));
const todo = (home: TestHome, text: string) => home.json(['todo', 'add', text, '--json'], getShop(home));

async function found(home: TestHome, query: string): Promise<string[]> {
  await home.flush();
  const hits = (await home.json(['memory', 'search', query, '--json'], getShop(home))) as { summary?: string }[];
  return hits.map((hit) => JSON.stringify(hit)).filter((text) => text.includes(query));
}

const inBucket = (text: string): Promise<boolean> => server.holds(text);

describe('three machines of one person', () => {
  const opened: TestHome[] = [];
  let [desktop, laptop, box] = opened as [TestHome, TestHome, TestHome];
  let url = '';

  beforeAll(async () => {
    url = freshUrl();
    [desktop, laptop, box] = await Promise.all([
      openMachine({}, opened),
      openMachine({}, opened),
      openMachine({}, opened),
    ]);
    await todo(desktop, 'renew the kingfisher certificate');
    const liked = { concept: 'preference', value: 'I prefer tabs over spaces.', polarity: 'positive' } as const;
    const node = makeNode({ project: SHOP, written_by: 'claude', facts: [{ ...liked, evidence: [], origin: 'user' }] });
    const archive = path.join(folder, 'export.jsonl');
    await writeFile(archive, renderArchive({ nodes: [node], briefs: [] }, 'jsonl'));
    await desktop.json(['memory', 'import', archive, '--as', 'export', '--yes', '--json']);
    expect(await share(desktop, 'init', url, '--scope', 'me', '--name', 'desktop', '--yes')).toMatchObject({
      ...{ url, scope: 'me', name: 'desktop', machines: 0, joined: SHOP },
    });
    expect(await share(laptop, 'join', url, '--name', 'laptop', '--yes')).toMatchObject({ scope: 'me', machines: 1 });
    expect(await share(box, 'join', url, '--name', 'box', '--yes')).toMatchObject({ machines: 2 });
  });

  afterAll(() => Promise.all(opened.map((home) => home.close())));

  it('have the same memory, and a removal leaves nothing of it anywhere', async () => {
    expect(await found(laptop, 'kingfisher')).toHaveLength(1);
    const facts = await laptop.run(['facts', 'ls'], getShop(laptop));
    expect(facts.stdout).toContain('tabs');
    const open = await laptop.run(['todo'], getShop(laptop));
    expect(open).toMatchObject({ code: 0, stdout: expect.stringContaining('kingfisher') });
    await todo(laptop, 'replace the pelican cable');
    expect(await share(laptop, 'push')).toEqual({ sent: 1 });
    expect(await share(box, 'pull')).toEqual({ added: 1 });
    expect(await found(box, 'pelican')).toHaveLength(1);
    expect(await inBucket('pelican')).toBe(true);

    const [hit] = (await box.json(['memory', 'search', 'pelican', '--json'], getShop(box))) as { node_id: string }[];
    await box.run(['memory', 'rm', hit?.node_id ?? '', '--yes'], getShop(box));
    await share(box, 'push');
    for (const home of [desktop, laptop]) {
      await share(home, 'pull');
      await share(home, 'push');
    }
    for (const home of [desktop, laptop, box]) {
      await home.flush();
      expect(await found(home, 'pelican')).toEqual([]);
      expect(await found(home, 'kingfisher')).toHaveLength(1);
      expect(await isStored(home.home, 'pelican')).toBe(false);
      expect(await isStored(home.home, 'S3RVER')).toBe(false);
    }
    expect(await inBucket('pelican')).toBe(false);
    expect(await share(desktop, 'status')).toMatchObject({
      ...{ url, scope: 'me', name: 'desktop', waiting: 0, problem: '' },
      machines: expect.arrayContaining([expect.objectContaining({ name: 'laptop', refused: '' })]),
    });
  });

  it('have the same tasks', async () => {
    const tasks = async (home: TestHome) =>
      (await home.json(['task', 'ls', '--done', '--json'], getShop(home))) as { title: string; status: string }[];
    await desktop.run(['task', 'add', 'oil the wigeon hinge', '--at', 'in 3 days'], getShop(desktop));
    expect(await share(desktop, 'preview')).toMatchObject({ tasks: [{ text: expect.stringContaining('wigeon') }] });
    await share(desktop, 'push');
    await share(laptop, 'pull');
    const [task] = (await tasks(laptop)) as { title: string; name?: string; trigger?: string }[];
    expect(task).toMatchObject({ title: 'oil the wigeon hinge', status: 'active', project: SHOP });
    await laptop.run(['task', 'done', task?.name ?? ''], getShop(laptop));
    await share(laptop, 'push');
    await share(desktop, 'pull');
    expect(await tasks(desktop)).toMatchObject([{ title: 'oil the wigeon hinge', status: 'done' }]);

    await desktop.run(['task', 'rm', task?.name ?? '', '--yes'], getShop(desktop));
    await share(desktop, 'push');
    await share(laptop, 'pull');
    await share(laptop, 'push');
    for (const home of [desktop, laptop]) {
      expect(await tasks(home)).toEqual([]);
      expect(await isStored(home.home, 'wigeon')).toBe(false);
    }
    expect(await inBucket('wigeon')).toBe(false);

    await laptop.run(['task', 'add', 'oil the wigeon hinge', '--at', 'in 3 days'], getShop(laptop));
    await share(laptop, 'push');
    await share(desktop, 'pull');
    expect(await tasks(desktop)).toMatchObject([{ title: 'oil the wigeon hinge', status: 'active' }]);
  });

  it('have what was written into pages and facts by hand, until it is taken out', async () => {
    const write = async (home: TestHome, file: string, text: string): Promise<void> => {
      await mkdir(path.dirname(path.join(home.home, file)), { recursive: true });
      await writeFile(path.join(home.home, file), text);
    };
    const read = (home: TestHome, file: string) => readFile(path.join(home.home, file), 'utf8');
    const [plan, profile] = ['library/plans/move.md', 'library/topics/user_profile.md'];
    await write(desktop, plan, `# Move\n\npack the gadwall box\n\nthe key is ${SECRET}\n\nlock the smew door\n`);
    await write(desktop, profile, '# Me\n\nI like the colour teal.\n');
    await write(desktop, 'memory/facts/user.md', '---\nscope: user\n---\n\n- Person.Preference: short scaup answers\n');
    await share(desktop, 'push');
    expect(await inBucket(SECRET)).toBe(false);
    expect(await share(desktop, 'preview')).toMatchObject({ pages: [], kept: { private: 1 } });
    await share(laptop, 'pull');
    expect(await read(laptop, plan)).toBe('# Move\n\npack the gadwall box\n\nlock the smew door\n');
    expect(await read(laptop, profile)).toContain('I like the colour teal.');
    expect((await laptop.run(['facts', 'ls'])).stdout).toContain('short scaup answers');

    await write(laptop, plan, '# Move\n\npack the gadwall box twice\n\nlock the smew door\n');
    const facts = (await laptop.json(['facts', 'ls', '--json'])) as { id: string; value: string }[];
    const fact = facts.find(({ value }) => value.includes('scaup'));
    await laptop.run(['facts', 'forget', fact?.id ?? '', '--yes']);
    await write(desktop, plan, (await read(desktop, plan)).replace('gadwall box', 'gadwall crate'));
    for (const home of [laptop, desktop, laptop, desktop]) {
      await share(home, 'pull');
      await share(home, 'push');
    }
    for (const home of [laptop, desktop]) {
      const text = await read(home, plan);
      for (const said of ['gadwall box twice', 'gadwall crate', 'smew']) expect(text).toContain(said);
      expect(await share(home, 'status')).toMatchObject({ changed_apart: [{ file: 'plans/move.md', blocks: 1 }] });
      expect(await isStored(path.join(home.home, 'memory/facts'), 'scaup')).toBe(false);
    }
    expect(await read(desktop, plan)).toContain(SECRET);
    expect(await inBucket('scaup')).toBe(false);
    expect((await laptop.run(['share', 'status'])).stdout).toContain('changed on two machines');
  });

  it('have the verbatim turns where that is set, until they are removed', async () => {
    const line = (turn: number, role: string, content: string) =>
      JSON.stringify({ session_id: 'nest', turn_id: turn, role, content, at: '2026-03-01T10:00:00Z' });
    const lines = [
      ...[line(1, 'user', 'Which port does the dunnock gateway use?'), line(1, 'assistant', 'It uses 7443.')],
      ...[line(2, 'user', 'And the whimbrel one?'), line(2, 'assistant', `It uses 7444, with ${SECRET}.`)],
    ];
    const file = path.join(folder, 'turns.jsonl');
    await writeFile(file, lines.join('\n'));
    for (const home of [desktop, laptop]) {
      const set = await home.run(['config', 'set', 'share.raw', 'on']);
      expect(set.stderr).toContain('it holds from the next exchange on');
    }
    await desktop.json(['memory', 'import', file, '--yes', '--json'], getShop(desktop));
    await desktop.flush();
    await share(desktop, 'push');
    await share(laptop, 'pull');
    expect(await share(laptop, 'push')).toEqual({ sent: 0 });
    const nodes = (await laptop.json(['memory', 'ls', '--json'], getShop(laptop))) as { node_id: string }[];
    const shown = await Promise.all(
      nodes.map(({ node_id }) => laptop.run(['memory', 'show', node_id, '--depth', '2'], getShop(laptop))),
    );
    expect(shown.map(({ stdout }) => stdout).join('\n')).toContain('And the whimbrel one?');
    expect(await laptop.run(['session', 'ls'], getShop(laptop))).toMatchObject({
      stdout: expect.stringContaining('nest'),
    });
    expect(await inBucket(SECRET)).toBe(false);
    await laptop.run(['restart']);
    expect((await laptop.json(['memory', 'ls', '--json'], getShop(laptop))) as unknown[]).toHaveLength(nodes.length);

    await laptop.run(['memory', 'forget', '--session', 'nest', '--yes'], getShop(laptop));
    await share(laptop, 'push');
    await share(desktop, 'pull');
    await share(desktop, 'push');
    for (const home of [desktop, laptop]) expect(await isStored(home.home, 'whimbrel')).toBe(false);
  });

  it('exchange by themselves, at a stop and at a start', async () => {
    const often = { COMET_CC_SHARE_INTERVAL_MINUTES: '5' };
    await Promise.all([laptop.run(['stop', '--now']), desktop.run(['restart'], { env: often })]);
    // After the exchange of the start: a stop waits three seconds for all that is under way.
    await share(desktop, 'pull');
    await todo(desktop, 'ask for the heron invoice');
    await desktop.run(['stop', '--now']);
    await laptop.run(['start'], { env: often });
    await expect.poll(() => found(laptop, 'heron'), { timeout: 30_000 }).toHaveLength(1);
  });
});

describe('machines of one person', () => {
  it('lose and double nothing where clocks differ by two hours', async () => {
    const url = freshUrl();
    const homes = await openMachines(clockOff(1), clockOff(-1), {});
    const [desktop, laptop, box] = homes as [TestHome, TestHome, TestHome];
    const exchange = async (): Promise<void> => {
      for (const home of [...homes, ...homes]) {
        await share(home, 'pull');
        await share(home, 'push');
      }
    };
    await share(desktop, 'init', url, '--scope', 'me', '--name', 'desktop', '--yes');
    await share(laptop, 'join', url, '--name', 'laptop', '--yes');
    await share(box, 'join', url, '--name', 'box', '--yes');
    for (const [at, home] of homes.entries()) await todo(home, `feed the dotterel ${at}`);
    await exchange();
    type Listed = { node_id: string; summary: string; created_at: string }[];
    const list = async (home: TestHome) => (await home.json(['memory', 'ls', '--json'], getShop(home))) as Listed;
    const made = (await list(box)).filter(({ summary }) => summary.includes('dotterel'));
    const times = made.map(({ created_at }) => Date.parse(created_at)).sort((a, b) => a - b);
    expect(times).toHaveLength(3);
    expect((times[2] as number) - (times[0] as number)).toBeGreaterThan(7_000_000);

    // The machine that is behind changes what the one that is ahead wrote, and removes what it wrote itself.
    const getId = (number: number) => made.find(({ summary }) => summary.includes(`dotterel ${number}`))?.node_id ?? '';
    await laptop.run(['memory', 'edit', getId(0), '--set', 'summary=feed the dotterel at noon'], getShop(laptop));
    await laptop.run(['memory', 'rm', getId(1), '--yes'], getShop(laptop));
    await exchange();
    for (const home of homes) {
      const texts = (await list(home)).map(({ summary }) => summary).filter((text) => text.includes('dotterel'));
      expect(texts.sort()).toEqual([expect.stringContaining('dotterel 2'), 'feed the dotterel at noon'].sort());
    }
  });

  it('encrypt what they publish where a passphrase is set', async () => {
    const url = freshUrl();
    const sealed = { COMET_CC_SHARE_PASSPHRASE: 'correct horse battery' };
    const [desktop, laptop] = await openMachines(sealed, {});
    await todo(desktop, 'order the cormorant chairs');
    await desktop.run(['task', 'add', 'oil the cormorant hinge', '--at', 'in 3 days'], getShop(desktop));
    const { cwd } = getShop(desktop);
    const front = `---\ntitle: Birds\nscope: project\nproject: ${cwd}\ntopic: birds\nupdated: 2026-03-01\n---\n\n`;
    const [facts, page] = [`memory/facts/${projectSlug(cwd)}.md`, 'library/topics/birds.md'];
    const turns = [
      {
        session_id: 'nest',
        turn_id: 1,
        role: 'user',
        content: 'Paint the dunlin door.',
        at: '2026-03-01T10:00:00Z',
      },
      { session_id: 'nest', turn_id: 1, role: 'assistant', content: 'It is painted.', at: '2026-03-01T10:00:00Z' },
    ];
    await writeFile(path.join(folder, 'nest.jsonl'), turns.map((line) => JSON.stringify(line)).join('\n'));
    await desktop.json(['memory', 'import', path.join(folder, 'nest.jsonl'), '--yes', '--json'], getShop(desktop));
    await desktop.flush();
    for (const file of [facts, page]) {
      await mkdir(path.dirname(path.join(desktop.home, file)), { recursive: true });
      await writeFile(path.join(desktop.home, file), `${front}- Project.Convention: no dunlin on fridays\n`);
    }
    await share(desktop, 'init', url, '--scope', 'me', '--name', 'desktop', '--yes');
    // The folder joined its remote just now, with what it had.
    for (const list of ['todo', 'task ls', 'memory ls'])
      expect((await desktop.run([...list.split(' ')], getShop(desktop))).stdout).toContain('cormorant');
    expect((await desktop.run(['facts', 'ls'], getShop(desktop))).stdout).toContain('dunlin');
    for (const file of [page, 'memory/briefs/nest.md'])
      expect(await readFile(path.join(desktop.home, file), 'utf8')).toContain(`\nproject: ${SHOP}\n`);
    expect(await inBucket('cormorant')).toBe(false);
    const without = await laptop.run(['share', 'join', url, '--yes'], getShop(laptop));
    expect(without).toMatchObject({ code: 2, stderr: expect.stringContaining('COMET_CC_SHARE_PASSPHRASE') });
    const wrong = await laptop.run(['share', 'join', url, '--yes'], {
      ...getShop(laptop),
      env: { COMET_CC_SHARE_PASSPHRASE: 'wrong' },
    });
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('passphrase is another one') });
    await laptop.json(['share', 'join', url, '--yes', '--json'], { ...getShop(laptop), env: sealed });
    expect(await found(laptop, 'cormorant')).toHaveLength(1);
    expect(await isStored(laptop.home, 'correct horse')).toBe(false);
  });

  it('go on from a copy of a home as two machines, and lose nothing', async () => {
    const url = freshUrl();
    const [desktop, copy] = await openMachines({}, {});
    await share(desktop, 'init', url, '--scope', 'me', '--name', 'desktop', '--yes');
    await Promise.all([desktop, copy].map((home) => home.run(['stop', '--now'])));
    for (const name of ['share', 'config.json', 'projects.json'])
      await cp(path.join(desktop.home, name), path.join(copy.home, name), { recursive: true });
    await copy.run(['start']);
    await todo(desktop, 'paint the osprey door');
    await share(desktop, 'push');
    await todo(copy, 'paint the buzzard door');
    await share(copy, 'push');
    await share(copy, 'pull');
    await share(desktop, 'pull');
    expect((await copy.run(['share', 'status'])).stdout).toContain('became a machine of its own');
    expect(await share(desktop, 'status')).toMatchObject({ restarted: null });
    for (const home of [desktop, copy]) {
      expect(await found(home, 'osprey')).toHaveLength(1);
      expect(await found(home, 'buzzard')).toHaveLength(1);
    }
  });
});

describe('a team', () => {
  it('gets the memory of named projects, labelled, and nothing else', async () => {
    const url = freshUrl();
    const [anna, bob] = await openMachines({}, {});
    await anna.json(['project', 'join', getShop(anna).cwd, '--yes', '--json']);
    await todo(anna, `the albatross gateway uses port 7443, token ${SECRET}`);
    await anna.json(['todo', 'add', 'my own puffin', '--json'], { cwd: anna.user });
    const preview = async () => (await share(anna, 'preview')) as { nodes: { project: string }[]; kept: object };
    await share(anna, 'init', url, '--scope', 'team', '--name', 'anna', '--yes');
    expect(await inBucket('albatross')).toBe(true);
    for (const text of ['puffin', SECRET]) expect(await inBucket(text)).toBe(false);
    expect(await preview()).toMatchObject({ nodes: [], kept: { project: 1 } });

    await share(bob, 'join', url, '--name', 'bob', '--yes');
    const list = async () => (await bob.json(['memory', 'ls', '--json'], getShop(bob))) as Record<string, unknown>[];
    expect(await list()).toMatchObject([
      { origin: 'external', project: SHOP, turns: [], source_links: expect.arrayContaining(['teammate:anna']) },
    ]);
    await bob.flush();
    expect((await bob.run(['memory', 'search', 'albatross'], getShop(bob))).stdout).toContain('anna');
    expect(await share(bob, 'push')).toEqual({ sent: 0 });

    expect(await share(bob, 'trust', 'anna', '--yes')).toMatchObject({ name: 'anna', trusted: true });
    // As it was there: a todo that a program noted.
    expect(await list()).toMatchObject([{ origin: 'tool' }]);
    await share(bob, 'trust', 'anna', '--off');
    expect(await list()).toMatchObject([{ origin: 'external' }]);

    await writeFile(path.join(anna.user, 'shop', '.comet-cc.json'), '{"share": false}');
    await expect.poll(async () => (await preview()).kept).toMatchObject({ forbidden: 1 });
    await share(anna, 'push');
    await share(bob, 'pull');
    expect(await list()).toEqual([]);
    expect(await inBucket('albatross')).toBe(false);

    server.fail('denied');
    expect(await anna.run(['share', 'leave', '--yes'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/still there.*not accepted.*to try again: comet-cc share leave/),
    });
    server.fail('none');
    for (const args of [['share', 'status'], ['status']])
      expect((await anna.run(args)).stdout).toContain(`is still in ${url}`);
    expect(await share(anna, 'leave', '--yes')).toEqual({ removed: true, problem: '' });
    expect(await share(anna, 'status')).toBeNull();
    expect((await anna.run(['config'])).stdout).not.toMatch(/^share\.(?!interval)/m);
  });

  it.skipIf(!hasTmux())('asks the user before it shares the projects that others named', async () => {
    const url = path.join(folder, 'team');
    const [eve, ada] = await openMachines({}, {});
    const projects = ['--project', SHOP, 'github.com/ada/diary'];
    await share(eve, 'init', url, '--scope', 'team', '--name', 'eve', '--yes', ...projects);
    await todo(ada, 'the albatross gateway uses port 7443');
    const terminal = openTmux(ada.env, { ...getShop(ada), columns: 160 });
    try {
      await terminal.type(`${process.execPath} ${CLI} share join ${url}`);
      await terminal.shows(/Publish memories of github\.com\/acme\/shop, github\.com\/ada\/diary to /);
      await terminal.type('n');
    } finally {
      terminal.close();
    }
    expect(await share(ada, 'status')).toBeNull();
    expect(await share(ada, 'join', url, '--project', SHOP, '--yes')).toMatchObject({ projects: [SHOP] });
  });

  it('says what is missing, and changes nothing then', async () => {
    const home = await openMachine();
    const run = (args: readonly string[], env = {}) => home.run(['share', ...args], { ...getShop(home), env });
    expect(await run(['join', freshUrl(), '--yes'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('no machine shares there'),
    });
    expect(await run(['push'])).toMatchObject({ code: 2, stderr: expect.stringContaining('share init') });
    expect(await run(['init', 'ftp://x', '--scope', 'me', '--yes'])).toMatchObject({ code: 2 });
    expect(await run(['init', 's3://key:secret@x', '--scope', 'me', '--yes'])).toMatchObject({ code: 2 });
    expect(await run(['init', `${server.uri}-no-such`, '--scope', 'me', '--yes'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('bucket'),
    });
    expect(await run(['init', freshUrl(), '--scope', 'me', '--yes'], { CLAUDECODE: '1' })).toMatchObject({ code: 2 });
    expect(await share(home, 'status')).toBeNull();
    await expect(stat(path.join(home.home, 'config.json'))).rejects.toThrow();
  });
});
