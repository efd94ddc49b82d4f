/**
 * How memory behaves when there is much of it.
 *
 *   npm run bench:scale -- [--turns 1000,10000,100000] [--appends 20000] [--keep DIR] [--json]
 *
 * For each number of turns a made-up history, with a node for every three, is brought into a real index by the engine's
 * own code, and asked 200 questions; each size runs in a process of its own, started as the guard starts the engine.
 * Then nodes are appended one by one to the second size, `--appends` of them; `fresh` is the same table copied and
 * optimised. With `--keep` the filled stores stay in a folder, and a later run only asks them.
 */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { ENGINE_ENV, ENGINE_FLAGS } from '../proxy/guard/engine-process.ts';
import type { Spread } from './latency/stats.ts';
import type { ScaleReport } from './scale/run.ts';
import type { SteadyReport } from './scale/steady.ts';

const { values } = parseArgs({
  options: {
    turns: { type: 'string', default: '1000,10000,100000' },
    appends: { type: 'string', default: '5000' },
    keep: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const sizes = values.turns.split(',').map(Number);
const appends = Number(values.appends);
if (sizes.some((size) => !(size > 0)) || !(appends >= 0)) throw new Error('--turns and --appends take whole numbers');

const runs: ScaleReport[] = [];
let steady: SteadyReport | null = null;
const temporary = await mkdtemp(path.join(os.tmpdir(), 'comet-scale-'));
const home = values.keep ?? temporary;
try {
  for (const [at, turns] of sizes.entries()) {
    const dir = path.join(home, `turns-${turns}`);
    const ingest = await filled(turns, dir);
    runs.push({ ...(await child<Omit<ScaleReport, 'ingest'>>('run', 'retrieve', turns, dir)), ingest });
    if (at !== Math.min(1, sizes.length - 1) || appends === 0) continue;
    const appended = path.join(temporary, 'appended');
    await cp(dir, appended, { recursive: true });
    steady = await child<SteadyReport>('steady', turns, appends, appended);
  }
} finally {
  await rm(temporary, { recursive: true, force: true });
}
if (values.json) console.log(JSON.stringify({ node: process.version, runs, steady }, null, 2));
else print();

/** What filling it took, also where an earlier run did it. */
async function filled(turns: number, dir: string): Promise<ScaleReport['ingest']> {
  const note = `${dir}.json`;
  const before = await readFile(note, 'utf8').catch(() => null);
  if (before !== null) return JSON.parse(before) as ScaleReport['ingest'];
  const ingest = await child<ScaleReport['ingest']>('run', 'ingest', turns, dir);
  await writeFile(note, JSON.stringify(ingest));
  return ingest;
}

async function child<T>(script: 'run' | 'steady', ...args: readonly (string | number)[]): Promise<T> {
  const file = fileURLToPath(new URL(`./scale/${script}.js`, import.meta.url));
  const running = promisify(execFile)(process.execPath, [...ENGINE_FLAGS, file, ...args.map(String)], {
    env: { ...ENGINE_ENV, ...process.env },
  });
  if (!values.json) running.child.stderr?.pipe(process.stderr);
  return JSON.parse((await running).stdout) as T;
}

function print(): void {
  for (const run of runs) {
    const { ingest, rss_mb: rss } = run;
    console.log(`${run.turns} turns, ${run.nodes} nodes, ${run.rows} rows`);
    for (const when of ['optimized', 'fresh'] as const) {
      const asked = run.retrieve_ms[when];
      console.log(`  recall, ${when.padEnd(9)} ${line(asked)} ms, processor ${asked.cpu.toFixed(1)} ms`);
    }
    const { search_ms: searched } = run;
    console.log(`  search, as typed  ${line(searched)} ms, processor ${searched.cpu.toFixed(1)} ms`);
    console.log(`  found in the first 10: ${percent(run.found_at_10)}`);
    console.log(`  ingest ${ingest.turns_per_second.toFixed(0)} turns/s`);
    console.log(`  opened in ${run.open_ms.toFixed(0)} ms, ${mb(run.disk_mb)} in ${run.files} files`);
    const most = Math.max(ingest.peak_mb, rss.peak);
    const each = `${mb(ingest.peak_mb)} filling, ${mb(rss.peak)} opening and asked, ${mb(rss.asked)} after questions, ${mb(rss.resting)} at rest`;
    console.log(`  resident at most ${mb(most)}: ${each}`);
  }
  if (steady === null) return;
  const { search_ms: search, disk_mb: disk } = steady;
  console.log(`${steady.appends} nodes appended one by one, ${line(steady.append_ms)} ms each`);
  for (const when of ['before', 'during', 'after', 'fresh'] as const) {
    const size = when === 'during' ? disk.peak : disk[when];
    console.log(`  search ${when.padEnd(6)} ${line(search[when])} ms, ${mb(size)}`);
  }
  console.log(`  resident at most ${mb(steady.rss_peak_mb)}`);
}

function line({ p50, p95 }: Spread): string {
  return `p50 ${p50.toFixed(1)}, p95 ${p95.toFixed(1)}`;
}

function mb(value: number): string {
  return `${value.toFixed(0)} MB`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
