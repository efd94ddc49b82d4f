import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import { writeFileAtomic } from '../../common/files.ts';
import { homePaths } from '../../common/paths.ts';
import { openSchema } from '../../engine/lifecycle/schema.ts';
import { editSettings, planSettings, uninstallEntries } from '../../install/claude-code/index.ts';
import type { MemoryNode } from '../../memory/model/node.ts';
import { openNodeFiles } from '../../memory/storage/fs/node-files.ts';
import { createIdSetFile } from '../../memory/storage/fs/set-files.ts';
import { openJournal } from '../../memory/storage/fs/turn-log.ts';
import { openLedgerFile } from '../../proxy/ledger/store.ts';
import type { PlanRecord } from '../../proxy/rewrite/plan.ts';
import { openPlanStore, type PlanStore } from '../../proxy/rewrite/plan-store.ts';
import { turn } from '../contract/turn-log.ts';
import { unpackHome } from '../helpers/earlier-homes.ts';
import { makeNode } from '../helpers/nodes.ts';

const { disk } = await vi.hoisted(async () => {
  const { createMortalDisk } = await import('../helpers/crash-fs.ts');
  return { disk: createMortalDisk() };
});
vi.mock('node:fs/promises', async (original) => disk.mortal(await original()));
/** A memory disk where there is one: each death has a home of its own, and thousands of syncs. */
const root = mkdtempSync(path.join(existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir(), 'comet-kill-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Work that is told what was acknowledged, and what must hold of the directory afterwards. */
interface Subject {
  readonly seeds: number;
  readonly prepare?: (dir: string) => void;
  work(dir: string, told: Told): Promise<void>;
  check(dir: string, told: Told, hadPower: boolean): Promise<void>;
}

interface Told {
  readonly began: string[];
  readonly done: string[];
}

const report = (): void => {};

const journalAndForgotten: Subject = {
  seeds: 150,
  async work(dir, told) {
    const journal = await openJournal({ dir, report });
    const forgotten = createIdSetFile(path.join(dir, 'forgotten'));
    for (let at = 0; at < 12; at += 1) {
      const session = `s-${at % 3}`;
      const both = ['a', 'b'].map(async (half) => {
        await journal.append(turn(session, `e${at}${half}`, `words of ${at} `.repeat(40)));
        told.done.push(`${session} e${at}${half}`);
      });
      await Promise.all(both);
      if (at % 4 === 3) {
        const turnId = String(at).padStart(64, '0');
        await forgotten.add([turnId]);
        told.done.push(`forgotten ${turnId}`);
      }
      if (at === 8) {
        told.began.push('s-1 e1a');
        await journal.remove('s-1', ['e1a']);
        told.done.push('removed');
      }
    }
    await journal.close();
  },
  async check(dir, { began, done }) {
    const journal = await openJournal({ dir, report });
    const kept = new Set<string>();
    for (const session of ['s-0', 's-1', 's-2']) {
      for (const { turnId } of await journal.read(session)) kept.add(`${session} ${turnId}`);
    }
    const forgotten = await createIdSetFile(path.join(dir, 'forgotten')).load();
    for (const turnId of forgotten) kept.add(`forgotten ${turnId}`);
    const wanted = done.filter((name) => name !== 'removed' && !began.includes(name));
    expect(wanted.filter((name) => !kept.has(name))).toEqual([]);
    if (done.includes('removed')) expect(kept.has('s-1 e1a')).toBe(false);
    await journal.append(turn('s-1', 'next'));
    expect((await journal.read('s-1')).at(-1)?.turnId).toBe('next');
    await createIdSetFile(path.join(dir, 'forgotten')).add(['f'.repeat(64)]);
    expect(await createIdSetFile(path.join(dir, 'forgotten')).load()).toContain('f'.repeat(64));
    await journal.close();
  },
};

const getId = (at: number): string => `mem_20260301_101500_${at.toString(16).padStart(6, '0')}`;

const nodeFiles: Subject = {
  seeds: 120,
  async work(dir, told) {
    const files = await openNodeFiles({ nodesDir: path.join(dir, 'nodes'), briefsDir: path.join(dir, 'briefs') });
    for (let version = 0; version < 3; version += 1) {
      for (let at = 0; at < 4; at += 1) {
        const node = makeNode({
          node_id: getId(at),
          session_id: `s-${at % 2}`,
          summary: `version ${version} of ${at}`,
        });
        told.began.push(`${at} ${version}`);
        await files.save([node]);
        told.done.push(`${at} ${version}`);
      }
    }
    told.began.push('3 dropped');
    await files.drop([getId(3)]);
    told.done.push('3 dropped');
  },
  async check(dir, told) {
    const files = await openNodeFiles({ nodesDir: path.join(dir, 'nodes'), briefsDir: path.join(dir, 'briefs') });
    const { nodes, problems } = await files.load();
    expect(problems).toEqual([]);
    for (let at = 0; at < 4; at += 1) {
      const of = (names: readonly string[]) =>
        names
          .filter((name) => name.startsWith(`${at} `))
          .at(-1)
          ?.split(' ')[1];
      const found = nodes.find(({ node_id }) => node_id === getId(at))?.summary.split(' ')[1];
      const allowed = [of(told.done), of(told.began)].map((one) => (one === 'dropped' ? undefined : one));
      expect(allowed).toContain(found);
    }
    await files.save([makeNode({ node_id: getId(9) })]);
    expect((await files.load()).nodes.map(({ node_id }) => node_id)).toContain(getId(9));
  },
};

const ledger: Subject = {
  seeds: 60,
  async work(dir, told) {
    const store = openLedgerFile(path.join(dir, 'costs.jsonl'), report);
    const own = (calls: number) => ({ kind: 'own', atMs: 1, conversation: 's', calls, tokens: 1, usd: 1 }) as const;
    for (let at = 0; at < 24; at += 1) {
      if (at === 16) await store.replace(told.done.map((calls) => own(Number(calls))));
      await store.append(own(at));
      told.done.push(String(at));
    }
  },
  async check(dir, told, hadPower) {
    const reported: string[] = [];
    const records = await openLedgerFile(path.join(dir, 'costs.jsonl'), (text) => reported.push(text)).load();
    expect(reported).toEqual([]);
    const kept = records.map((record) => ('calls' in record ? String(record.calls) : ''));
    // It is not synced: a power cut may cost the last figures, a kill none.
    if (hadPower) expect(kept).toEqual(expect.arrayContaining(told.done));
  },
};

const getPlan = (id: string): PlanRecord =>
  ({
    kind: 'plan',
    plan: {
      id,
      sessionId: 's-1',
      epoch: 1,
      cut: { through: 'a', preamble: 'what was cut. '.repeat(50), nodeIds: [] },
      strippedThrough: null,
      systemBlock: null,
      injections: [],
      rounds: [],
      broken: null,
    },
    served: 'b',
    use: {},
  }) as unknown as PlanRecord;

async function everyRecord(store: PlanStore): Promise<PlanRecord[]> {
  const records: PlanRecord[] = [];
  for await (const some of store.load()) records.push(...some);
  return records;
}

const plans: Subject = {
  seeds: 60,
  async work(dir, told) {
    const store = openPlanStore(path.join(dir, 'plans'));
    for (let at = 0; at < 12; at += 1) {
      await store.append(`s-${at % 2}`, getPlan(`p${at}`), true);
      told.done.push(`p${at}`);
    }
  },
  async check(dir, told) {
    const store = openPlanStore(path.join(dir, 'plans'));
    const ids = (await everyRecord(store)).map((record) => (record.kind === 'plan' ? record.plan.id : ''));
    expect(store.problems()).toEqual([]);
    expect(ids).toEqual(expect.arrayContaining(told.done));
    await store.append('s-1', getPlan('next'), true);
    expect(JSON.stringify(await everyRecord(openPlanStore(path.join(dir, 'plans'))))).toContain('"next"');
  },
};

const BEFORE = '{\n  "model": "opus",\n  "env": { "HTTPS_PROXY": "http://corp:3128" }\n}\n';
const settingsFile = (dir: string): string => path.join(dir, '.claude', 'settings.json');
const ours = (port: number) => ({ HTTPS_PROXY: `http://comet-cc:T@127.0.0.1:${port}`, NODE_EXTRA_CA_CERTS: '/b.pem' });

const settings: Subject = {
  seeds: 60,
  prepare(dir) {
    mkdirSync(path.dirname(settingsFile(dir)));
    writeFileSync(settingsFile(dir), BEFORE);
  },
  async work(dir, told) {
    const paths = homePaths(path.join(dir, 'home'));
    for (const port of [8443, 8444]) {
      const plan = await planSettings(settingsFile(dir), ours(port));
      told.began.push(plan.after);
      await editSettings(paths, plan);
    }
    await uninstallEntries(paths, 'env', []);
  },
  async check(dir, told) {
    const paths = homePaths(path.join(dir, 'home'));
    expect([BEFORE, ...told.began]).toContain(readFileSync(settingsFile(dir), 'utf8'));
    await editSettings(paths, await planSettings(settingsFile(dir), ours(8445)));
    await uninstallEntries(paths, 'env', []);
    expect(JSON.parse(readFileSync(settingsFile(dir), 'utf8'))).toEqual(JSON.parse(BEFORE));
  },
};

const migration: Subject = {
  seeds: 50,
  prepare(dir) {
    writeFileSync(path.join(dir, 'schema.json'), '{"schema":1}\n');
    for (let at = 0; at < 6; at += 1) writeFileSync(path.join(dir, `store-${at}`), 'form 1');
  },
  async work(dir) {
    await openSchema(homePaths(dir), toForm2(dir));
  },
  async check(dir) {
    const older = await openSchema(homePaths(dir), { schema: 1, migrations: [] }).then(
      () => 'ours',
      (error: { code?: string }) => error.code,
    );
    if (older === 'ours') expect(formsIn(dir)).toEqual(['form 1']);
    else expect(older).toBe('schema_newer');
    await openSchema(homePaths(dir), toForm2(dir));
    expect(formsIn(dir)).toEqual(['form 2']);
    await expect(openSchema(homePaths(dir), { schema: 1, migrations: [] })).rejects.toMatchObject({
      code: 'schema_newer',
    });
  },
};

/** Every text of an earlier home is there after each kill, in the old form or the new one, and at last in the new one. */
const earlierHome: Subject = {
  seeds: 60,
  prepare: (dir) => cpSync(earlierDir(), dir, { recursive: true, preserveTimestamps: true }),
  async work(dir) {
    await openSchema(homePaths(dir));
  },
  async check(dir) {
    const paths = homePaths(dir);
    const before = await openNodeFiles(paths).then((files) => files.load());
    await openSchema(paths);
    const after = await openNodeFiles(paths).then((files) => files.load());
    expect(after.nodes).toEqual(before.nodes);
    expect(after.nodes).toEqual(earlier.nodes);
    expect(after.problems.map(({ file }) => file)).toEqual(before.problems.map(({ file }) => file));
    expect(backedUp(dir)).toEqual(earlier.texts);
    await expect(openSchema(paths, { schema: 1, migrations: [] })).rejects.toMatchObject({ code: 'schema_newer' });
  },
};

/** Unpacked once: each point gets a copy. */
const earlierDir = (): string => path.join(root, 'earlier');
const earlier = { nodes: [] as readonly MemoryNode[], texts: {} as Record<string, string> };
const textsBelow = (dir: string): Record<string, string> =>
  Object.fromEntries(
    ['nodes', 'briefs'].flatMap((kind) =>
      readdirSync(path.join(dir, kind), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.md'))
        .map((name) => [path.join(kind, name), readFileSync(path.join(dir, kind, name), 'utf8')]),
    ),
  );
const backedUp = (dir: string): Record<string, string> => textsBelow(path.join(dir, 'memory/backup/schema-1'));

const stores = (dir: string): string[] => readdirSync(dir).filter((name) => /^store-\d$/.test(name));
const formsIn = (dir: string): string[] => [
  ...new Set(stores(dir).map((name) => readFileSync(path.join(dir, name), 'utf8'))),
];

function toForm2(dir: string) {
  const run = async (): Promise<null> => {
    for (const name of stores(dir)) await writeFileAtomic(path.join(dir, name), 'form 2');
    return null;
  };
  return { schema: 2, migrations: [{ to: 2, run }] };
}

/** Dies at `subject.seeds` points of the work, by a kill or with the machine, and looks at what is left. */
async function killed(name: string, subject: Subject): Promise<number> {
  const live = async (seed: string, death: Parameters<typeof disk.live>[0]) => {
    const dir = path.join(root, `${name}-${seed}`);
    mkdirSync(dir, { mode: 0o700 });
    subject.prepare?.(dir);
    const told: Told = { began: [], done: [] };
    disk.live(death);
    const error = await subject.work(dir, told).then(
      () => null,
      (failed: unknown) => failed,
    );
    return { dir, told, error, ...disk.reborn() };
  };
  const whole = await live('whole', null);
  expect(whole.error).toBeNull();
  for (let seed = 1; seed <= subject.seeds; seed += 1) {
    const random = seeded(seed);
    const step = 1 + Math.floor(random() * whole.steps);
    const tear = random();
    const hadPower = random() < 0.5;
    const power = hadPower ? null : random;
    const first = await live(String(seed), { step, tear, power });
    // The number of writes varies a little where files are written in parallel: then the last one is the point.
    const isShort = !first.died && step > first.steps;
    const { dir, told, died } = isShort ? await live(`${seed}-last`, { step: first.steps, tear, power }) : first;
    expect(died).toBe(true);
    await subject.check(dir, told, hadPower).catch((cause: unknown) => {
      throw new Error(`${name}, seed ${seed}: step ${step} of ${whole.steps}, power ${hadPower}: ${cause}`, { cause });
    });
    rmSync(dir, { recursive: true });
  }
  return subject.seeds;
}

it('a store killed at any of 450 writes is readable and loses nothing acknowledged', async () => {
  let points = 0;
  points += await killed('journal', journalAndForgotten);
  points += await killed('nodes', nodeFiles);
  points += await killed('ledger', ledger);
  points += await killed('plans', plans);
  points += await killed('settings', settings);
  expect(points).toBe(450);
});

it('a home killed at any of 50 writes of an upgrade is old or new, and an older program refuses it in between', async () => {
  expect(await killed('migration', migration)).toBe(50);
});

it('row 64: killed at 60 points of the upgrade of an earlier home, no node is lost and every file is in the backup', async () => {
  unpackHome('d6206c7-rich', earlierDir());
  earlier.texts = textsBelow(path.join(earlierDir(), 'memory'));
  const read = path.join(root, 'earlier-read');
  earlierHome.prepare?.(read);
  const files = await openNodeFiles(homePaths(read));
  earlier.nodes = (await files.load()).nodes;
  expect(earlier.nodes.length).toBeGreaterThan(30);
  expect(await killed('earlier-home', earlierHome)).toBe(60);
});

/** Mulberry32. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
