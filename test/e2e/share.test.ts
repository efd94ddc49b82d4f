import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { renderArchive } from '../../memory/storage/archive.ts';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { makeNode } from '../helpers/nodes.ts';
import { type S3Server, startS3Server } from '../helpers/s3-server.ts';

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

/** A machine with a clone of the shop; nothing is exchanged unless a test asks for it. */
async function openMachine(env: Readonly<Record<string, string>> = {}): Promise<TestHome> {
  const home = await createHomeWithCerts({
    ...(server.env as Record<string, string>),
    ...{ COMET_CC_SHARE_INTERVAL_MINUTES: '0', ...env },
  });
  homes.push(home);
  await home.run(['start']);
  await mkdir(path.join(home.user, 'shop', '.git'), { recursive: true });
  const config = `[remote "origin"]\n\turl = git@github.com:acme/shop.git\n`;
  await writeFile(path.join(home.user, 'shop', '.git', 'config'), config);
  return home;
}

const shopOf = (home: TestHome) => ({ cwd: path.join(home.user, 'shop') });
const share = (home: TestHome, ...args: string[]) => home.json(['share', ...args, '--json'], shopOf(home));
const todo = (home: TestHome, text: string) => home.json(['todo', 'add', text, '--json'], shopOf(home));

async function found(home: TestHome, query: string): Promise<string[]> {
  await home.flush();
  const hits = (await home.json(['memory', 'search', query, '--json'], shopOf(home))) as { summary?: string }[];
  return hits.map((hit) => JSON.stringify(hit)).filter((text) => text.includes(query));
}

async function isStored(dir: string, text: string): Promise<boolean> {
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    if ((await readFile(path.join(entry.parentPath, entry.name))).includes(text)) return true;
  }
  return false;
}

const inBucket = (text: string): Promise<boolean> => isStored(path.join(folder, 'buckets'), text);

describe('machines of one person', () => {
  it('have the same memory, and a removal leaves nothing of it anywhere', async () => {
    const url = freshUrl();
    const [desktop, laptop, box] = [await openMachine(), await openMachine(), await openMachine()];
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
    expect(await found(laptop, 'kingfisher')).toHaveLength(1);

    const facts = await laptop.run(['facts', 'ls'], shopOf(laptop));
    expect(facts.stdout).toContain('tabs');
    const open = await laptop.run(['todo'], shopOf(laptop));
    expect(open.stdout).toContain('kingfisher');
    await todo(laptop, 'replace the pelican cable');
    expect(await share(laptop, 'push')).toEqual({ sent: 1 });
    expect(await share(box, 'pull')).toEqual({ added: 1 });
    expect(await found(box, 'pelican')).toHaveLength(1);
    expect(await inBucket('pelican')).toBe(true);

    const [hit] = (await box.json(['memory', 'search', 'pelican', '--json'], shopOf(box))) as { node_id: string }[];
    await box.run(['memory', 'rm', hit?.node_id ?? '', '--yes'], shopOf(box));
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
    }
    expect(await inBucket('pelican')).toBe(false);
    expect(await share(desktop, 'status')).toMatchObject({
      ...{ url, scope: 'me', name: 'desktop', waiting: 0, problem: '' },
      machines: expect.arrayContaining([expect.objectContaining({ name: 'laptop', refused: '' })]),
    });
  });

  it('exchange by themselves, at a stop and at a start', async () => {
    const url = freshUrl();
    const [desktop, laptop] = [await openMachine(), await openMachine()];
    await share(desktop, 'init', url, '--scope', 'me', '--name', 'desktop', '--yes');
    await share(laptop, 'join', url, '--name', 'laptop', '--yes');
    await laptop.run(['stop', '--now']);
    const often = { COMET_CC_SHARE_INTERVAL_MINUTES: '5' };
    await desktop.run(['restart'], { env: often });
    await todo(desktop, 'ask for the heron invoice');
    await desktop.run(['stop', '--now']);
    await laptop.run(['start'], { env: often });
    await expect.poll(() => found(laptop, 'heron'), { timeout: 30_000 }).toHaveLength(1);
  });

  it('encrypt what they publish where a passphrase is set', async () => {
    const url = freshUrl();
    const sealed = { COMET_CC_SHARE_PASSPHRASE: 'correct horse battery' };
    const [desktop, laptop] = [await openMachine(sealed), await openMachine()];
    await todo(desktop, 'order the cormorant chairs');
    await share(desktop, 'init', url, '--scope', 'me', '--name', 'desktop', '--yes');
    expect(await inBucket('cormorant')).toBe(false);
    const without = await laptop.run(['share', 'join', url, '--yes'], shopOf(laptop));
    expect(without).toMatchObject({ code: 2, stderr: expect.stringContaining('COMET_CC_SHARE_PASSPHRASE') });
    const wrong = await laptop.run(['share', 'join', url, '--yes'], {
      ...shopOf(laptop),
      env: { COMET_CC_SHARE_PASSPHRASE: 'wrong' },
    });
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('passphrase is another one') });
    await laptop.json(['share', 'join', url, '--yes', '--json'], { ...shopOf(laptop), env: sealed });
    expect(await found(laptop, 'cormorant')).toHaveLength(1);
    expect(await isStored(laptop.home, 'correct horse')).toBe(false);
  });

  it('go on from a copy of a home as two machines, and lose nothing', async () => {
    const url = freshUrl();
    const [desktop, copy] = [await openMachine(), await openMachine()];
    await share(desktop, 'init', url, '--scope', 'me', '--name', 'desktop', '--yes');
    await desktop.run(['stop', '--now']);
    for (const name of ['share', 'config.json', 'projects.json'])
      await cp(path.join(desktop.home, name), path.join(copy.home, name), { recursive: true });
    await todo(desktop, 'paint the osprey door');
    await share(desktop, 'push');
    await todo(copy, 'paint the buzzard door');
    await share(copy, 'push');
    await share(copy, 'pull');
    await share(desktop, 'pull');
    for (const home of [desktop, copy]) {
      expect(await found(home, 'osprey')).toHaveLength(1);
      expect(await found(home, 'buzzard')).toHaveLength(1);
    }
  });
});

describe('a team', () => {
  it('gets the memory of named projects, labelled, and nothing else', async () => {
    const url = freshUrl();
    const [anna, bob] = [await openMachine(), await openMachine()];
    await anna.json(['project', 'join', shopOf(anna).cwd, '--yes', '--json']);
    await todo(anna, `the albatross gateway uses port 7443, token ${SECRET}`);
    await anna.json(['todo', 'add', 'my own puffin', '--json'], { cwd: anna.user });
    const preview = async () => (await share(anna, 'preview')) as { nodes: { project: string }[]; kept: object };
    await share(anna, 'init', url, '--scope', 'team', '--name', 'anna', '--yes');
    expect(await inBucket('albatross')).toBe(true);
    for (const text of ['puffin', SECRET]) expect(await inBucket(text)).toBe(false);
    expect(await preview()).toMatchObject({ nodes: [], kept: { project: 1 } });

    await share(bob, 'join', url, '--name', 'bob', '--yes');
    const list = async () => (await bob.json(['memory', 'ls', '--json'], shopOf(bob))) as Record<string, unknown>[];
    expect(await list()).toMatchObject([
      { origin: 'external', project: SHOP, turns: [], source_links: expect.arrayContaining(['teammate:anna']) },
    ]);
    await bob.flush();
    expect((await bob.run(['memory', 'search', 'albatross'], shopOf(bob))).stdout).toContain('anna');
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

    expect(await share(anna, 'leave', '--yes')).toEqual({ removed: true, problem: '' });
    expect(await share(anna, 'status')).toBeNull();
  });

  it('says what is missing, and changes nothing then', async () => {
    const home = await openMachine();
    const run = (args: readonly string[], env = {}) => home.run(['share', ...args], { ...shopOf(home), env });
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
