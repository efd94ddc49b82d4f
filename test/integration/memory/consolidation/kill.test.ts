import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { homePaths } from '../../../../common/paths.ts';
import { recoverChange } from '../../../../memory/consolidation/consolidation.ts';
import { renderArchive } from '../../../../memory/storage/archive.ts';
import { openDreamFiles } from '../../../../memory/storage/fs/dream-files.ts';
import { openNodeFiles } from '../../../../memory/storage/fs/node-files.ts';
import { openPageFiles } from '../../../../memory/storage/fs/page-files.ts';
import { contentDigest } from '../../../../memory/storage/index-writer.ts';
import { getProgram } from '../../../helpers/compiled.ts';
import { openOnDisk } from '../../../helpers/disk-rig.ts';
import { dreamNodes } from '../../../helpers/dream-nodes.ts';
import { openDreamRig } from '../../../helpers/dream-rig.ts';

const { disk } = await vi.hoisted(async () => {
  const { createMortalDisk } = await import('../../../helpers/crash-fs.ts');
  return { disk: createMortalDisk() };
});
vi.mock('node:fs/promises', async (original) => disk.mortal(await original()));

/** Of processes; each costs the start of one. */
const REAL_KILLS = 5;
/** A memory disk where there is one: hundreds of homes are copied and synced. */
const out = mkdtempSync(path.join(existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir(), 'comet-dream-'));
let before: string;
let after: string;
let steps: number;

beforeAll(async () => {
  const base = path.join(out, 'base');
  const text = 'We decided to use Redis for the invoice cache';
  const decisions = [{ text, origin: 'user' as const, turn: 'end-8', by: 'user' as const }];
  const nodes = dreamNodes().map((node) => (node.turns[0] === 'end-8' ? { ...node, decisions } : node));
  await (await openNodeFiles(homePaths(base))).save(nodes);
  const { memory } = await openOnDisk(base, { llm: 'local', watch: null });
  await memory.maintenance.flush(30_000);
  await memory.maintenance.close();
  before = await exported(base);
  const whole = copy('whole');
  steps = (await dreamUntil(whole, null)).steps;
  after = await exported(whole);
});

afterAll(() => rmSync(out, { recursive: true, force: true }));

function copy(name: string): string {
  const home = path.join(out, name);
  cpSync(path.join(out, 'base'), home, { recursive: true });
  return home;
}

/** Dreams in this process until its disk dies at a step, or to the end. */
async function dreamUntil(
  home: string,
  step: number | null,
): Promise<{ readonly steps: number; readonly died: boolean }> {
  const memory = await openDreamRig(home);
  disk.live(step === null ? null : { step, tear: 0.5, power: null });
  await memory.maintenance.dream({ dryRun: false }).catch(() => {});
  // A dead process does nothing more, so the memory ends before the disk works again.
  if (step !== null) await memory.maintenance.close().catch(() => {});
  return disk.reborn();
}

/** Memory as a start finds it. */
async function exported(home: string): Promise<string> {
  const paths = homePaths(home);
  const files = await openNodeFiles(paths);
  const { libraryDir: dir } = paths;
  const pageFiles = await openPageFiles({ dir, ...paths });
  await recoverChange(files, await openDreamFiles(paths.dreamDir), pageFiles);
  const { nodes, problems } = await files.load();
  expect(problems).toEqual([]);
  const { texts } = await pageFiles.load();
  const told = (await (await openDreamFiles(paths.dreamDir)).load())?.told;
  return JSON.stringify(
    [renderArchive({ nodes, briefs: await files.briefs() }, 'jsonl'), ...texts, ['told', told]].sort(),
  );
}

async function expectIndexAgrees(home: string): Promise<void> {
  const { memory, index } = await openOnDisk(home, { llm: 'local', watch: null });
  await memory.maintenance.flush(30_000);
  const entries = [...(await index.entries())].map(([id, { digest }]) => [id, digest]).sort();
  const { library } = memory;
  const nodes = library.list({ all: true }).map((node) => [node.node_id, contentDigest(node)]);
  await memory.maintenance.close();
  expect(entries).toEqual(nodes.sort());
  expect([before, after]).toContain(await exported(home));
}

test('killed at any write, memory is as before the dream or as after it', async () => {
  expect(after).not.toBe(before);
  expect(after).toContain('topics/shop-database.md');
  expect(after).toContain('inbox/2026-11-22.md');
  const seen = { before: 0, after: 0 };
  for (let step = 1; step <= steps; step += 1) {
    const home = copy(`step-${step}`);
    expect((await dreamUntil(home, step)).died).toBe(true);
    const found = await exported(home);
    expect([before, after], `killed at step ${step} of ${steps}`).toContain(found);
    seen[found === before ? 'before' : 'after'] += 1;
    rmSync(home, { recursive: true });
  }
  expect(seen.before).toBeGreaterThan(steps / 10);
  expect(seen.after).toBeGreaterThan(0);
});

test('a process that is killed leaves memory and index as before the dream or as after it', async () => {
  const program = getProgram('dream');
  const dreamIn = async (home: string, killAt: number): Promise<string> => {
    const env = { KILL_AT: String(killAt) };
    const { exitCode, isTerminated, stderr, stdout } = await execa('node', [program, home], { reject: false, env });
    expect({ exitCode, isTerminated, stderr }).toEqual({ exitCode: undefined, isTerminated: true, stderr: '' });
    return stdout;
  };
  const calls = Number(await dreamIn(copy('counted'), -1));
  for (let nth = 0; nth < REAL_KILLS; nth += 1) {
    const home = copy(`kill-${nth}`);
    // Before a call for even numbers, in its middle or after it for odd ones.
    await dreamIn(home, Math.floor(((nth + 0.5) * 2 * calls) / REAL_KILLS));
    await expectIndexAgrees(home);
    expect([before, after]).toContain(await exported(home));
  }
});
