import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { homePaths } from '../../../../common/paths.ts';
import { recoverChange } from '../../../../memory/consolidation/transaction.ts';
import { renderArchive } from '../../../../memory/model/archive.ts';
import { contentDigest } from '../../../../memory/model/content-hash.ts';
import { openDreamFiles } from '../../../../memory/storage/fs/change-files.ts';
import { openNodeFiles } from '../../../../memory/storage/fs/node-files.ts';
import { compileInto } from '../../../helpers/compiled.ts';
import { openOnDisk } from '../../../helpers/disk-rig.ts';
import { dreamNodes } from '../../../helpers/dream-nodes.ts';

const KILLS = 100;
/** After so many of them memory is opened with its index; after all of them the files are read as a start reads them. */
const OPENED = 8;
let out: string;
let before: string;
let after: string;
let operations: number;

/** Dies at the n-th call that changes a file: even numbers before it, odd ones after it or, of a write, in its middle. */
const KILLER = `
import { syncBuiltinESMExports } from 'node:module';
import fs from 'node:fs';
const fsp = fs.promises;
const at = Number(process.env.KILL_AT);
let armed = false;
let calls = 0;
export const arm = () => { armed = true; };
export const counted = () => calls;
const die = () => process.kill(process.pid, 'SIGKILL');
const wrapped = (owner, name, half) => {
  const real = owner[name];
  owner[name] = async function (...args) {
    if (!armed) return real.apply(this, args);
    const own = calls++;
    if (at === 2 * own) die();
    if (at === 2 * own + 1 && half) { await half.call(this, real, args); die(); }
    const result = await real.apply(this, args);
    if (at === 2 * own + 1) die();
    return result;
  };
};
for (const name of ['open', 'rename', 'rm', 'link', 'mkdir', 'unlink']) wrapped(fsp, name);
const handle = await fsp.open(process.argv[1], 'r');
const proto = Object.getPrototypeOf(handle);
await handle.close();
wrapped(proto, 'writeFile', function (real, [data]) { return real.call(this, data.slice(0, data.length >> 1)); });
wrapped(proto, 'sync');
syncBuiltinESMExports();
`;

const SLEEPER = `
import { arm, counted } from './killer.js';
const { createDisk, openRig } = await import('./test/helpers/memory-rig.js');
const { openNodeFiles } = await import('./memory/storage/fs/node-files.js');
const { openDreamFiles } = await import('./memory/storage/fs/change-files.js');
const { openSnapshotFiles } = await import('./memory/storage/fs/snapshot-files.js');
process.umask(0o077);
const [home, llm] = [process.argv[2], 'local'];
let made = 0;
const randomHex = () => (made++).toString(16).padStart(6, '0');
const now = () => Date.parse('2026-11-22T03:00:00.000Z');
const memory = await openRig(createDisk(), {
  llm, randomHex, clock: { now },
  nodeFiles: await openNodeFiles({ nodesDir: home + '/memory/nodes', briefsDir: home + '/memory/briefs' }),
  dreams: await openDreamFiles(home + '/memory/dream'),
  snapshots: await openSnapshotFiles({ dir: home + '/memory/snapshots', most: 20, now, randomHex }),
});
await memory.maintenance.flush(30_000);
arm();
await memory.maintenance.dream({ dryRun: false });
process.stdout.write(String(counted()));
process.kill(process.pid, 'SIGKILL');
`;

beforeAll(async () => {
  out = await mkdtemp(path.join(os.tmpdir(), 'comet-dream-'));
  await compileInto(path.join(out, 'js'), [
    'test/helpers/memory-rig.ts',
    'memory/storage/fs/node-files.ts',
    'memory/storage/fs/change-files.ts',
    'memory/storage/fs/snapshot-files.ts',
  ]);
  await writeFile(path.join(out, 'js', 'killer.js'), KILLER);
  await writeFile(path.join(out, 'js', 'sleeper.js'), SLEEPER);
  const base = path.join(out, 'base');
  await (await openNodeFiles(homePaths(base))).save(dreamNodes());
  const { memory } = await openOnDisk(base, { llm: 'local', watch: null });
  await memory.maintenance.flush(30_000);
  await memory.maintenance.close();
  before = await exported(base);
  const whole = await copyOf('whole');
  operations = Number((await dreamIn(whole, -1)).stdout);
  after = await exported(whole);
});

afterAll(() => rm(out, { recursive: true, force: true }));

async function copyOf(name: string): Promise<string> {
  const home = path.join(out, name);
  await cp(path.join(out, 'base'), home, { recursive: true });
  return home;
}

/** A process of its own dreams in `home` and is killed; it ends no other way. */
async function dreamIn(home: string, killAt: number): Promise<{ readonly stdout: string }> {
  const script = path.join(out, 'js', 'sleeper.js');
  const env = { KILL_AT: String(killAt) };
  const { exitCode, isTerminated, stderr, stdout } = await execa('node', [script, home], { reject: false, env });
  expect({ exitCode, isTerminated, stderr }).toEqual({ exitCode: undefined, isTerminated: true, stderr: '' });
  return { stdout };
}

/** Memory as a start finds it. */
async function exported(home: string): Promise<string> {
  const paths = homePaths(home);
  const files = await openNodeFiles(paths);
  await recoverChange(files, await openDreamFiles(paths.dreamDir));
  const { nodes, problems } = await files.load();
  expect(problems).toEqual([]);
  return renderArchive({ nodes, briefs: await files.briefs() }, 'jsonl');
}

async function expectIndexAgrees(home: string): Promise<void> {
  const { memory, index } = await openOnDisk(home, { llm: 'local', watch: null });
  await memory.maintenance.flush(30_000);
  const entries = [...(await index.entries())].map(([id, { digest }]) => [id, digest]).sort();
  const nodes = memory.library.list({ all: true }).map((node) => [node.node_id, contentDigest(node)]);
  const archive = await memory.library.exportAll('jsonl');
  await memory.maintenance.close();
  expect(entries).toEqual(nodes.sort());
  expect([before, after]).toContain(archive);
}

test('killed at any of a hundred points, memory is as before the dream or as after it', async () => {
  expect(after).not.toBe(before);
  const points = Array.from({ length: KILLS }, (_, at) => Math.floor((at * 2 * operations) / KILLS));
  const seen = { before: 0, after: 0 };
  const kill = async (killAt: number, at: number): Promise<void> => {
    const home = await copyOf(`kill-${at}`);
    await dreamIn(home, killAt);
    if (at % Math.ceil(KILLS / OPENED) === 0) await expectIndexAgrees(home);
    const found = await exported(home);
    expect([before, after], `killed at ${killAt} of ${2 * operations}`).toContain(found);
    seen[found === before ? 'before' : 'after'] += 1;
    await rm(home, { recursive: true, force: true });
  };
  for (let at = 0; at < KILLS; at += 4) {
    await Promise.all(points.slice(at, at + 4).map((killAt, odd) => kill(killAt, at + odd)));
  }
  expect(seen.before).toBeGreaterThan(KILLS / 10);
  expect(seen.after).toBeGreaterThan(0);
});
