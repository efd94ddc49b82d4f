import { setTimeout as after } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openStage } from './latency/stage.ts';
import { freePort, openCollector } from './soak/collector.ts';
import { keptMb, type Reading, read } from './soak/readings.ts';
import { askedAmongTunnels, keepBusy } from './soak/traffic.ts';

/**
 * `npm run soak -- --hours N | --minutes N | --seconds N`: one daemon under mixed load. Exits with 1 when memory,
 * descriptors or the index grew, or a request failed.
 *
 * Readings under load follow the load and the garbage collector, so each is taken at rest, after a collection that the
 * engine's inspector runs. With `--hours` or `--minutes` the daemon rests for 45 seconds after the warm-up and at the
 * end, and growth is the difference of the lowest readings. With `--seconds` it rests briefly after each of several
 * equal slices of load, and growth is the slope over them.
 */

/** Share of the busy time after which caches are full and code is compiled. */
const WARM_UP = 0.6;
/** Longer than the index waits before it compacts at rest. */
const REST_MS = 45_000;
const COLLECT_EVERY = 10;
const MINUTES = 5;
const BETWEEN_MS = 1_000;
const TOLD_MS = 60_000;
const SLICES = 6;
const SLICE_REST_MS = 1_500;

const { values } = parseArgs({
  options: { hours: { type: 'string' }, minutes: { type: 'string' }, seconds: { type: 'string' } },
});
const isShort = values.seconds !== undefined;
const forMs = isShort
  ? Number(values.seconds) * 1_000
  : Number(values.hours ?? 0) * 3_600_000 + Number(values.minutes ?? (values.hours ? 0 : MINUTES)) * 60_000;
/** Idle connections to the stand-in close well before a rest is over. */
const KEEP_ALIVE_MS = isShort ? 500 : 5_000;
/**
 * A fitted line follows pages and pooled connections, of which 4 more or fewer are idle at each rest; a rest of 45
 * seconds does not. In the short run the engine's caches still fill: 12 MB when alone, 16 beside the checks of CI; a
 * request kept in each of its 140 turns would add 12 more. The slices after the warm-up send some 500 requests, so a
 * leak of one in 50 exceeds 10 descriptors.
 */
const MOST = isShort
  ? { guardMb: 10, engineMb: 25, guardFds: 10, engineFds: 10, indexFds: 100, indexMb: 10 }
  : { guardMb: 10, engineMb: 10, guardFds: 0, engineFds: 0, indexFds: 100, indexMb: 10 };
/**
 * What stays of each turn that was kept meanwhile: its rows on disk, and in memory what `bench:scale` measures of
 * 100,000 turns, its words, vectors and node. Of a run that is no longer than usual the 10 MB hold all of it.
 */
const TURN_KB = {
  guardMb: 0,
  engineMb: forMs > MINUTES * 60_000 ? 4 : 0,
  guardFds: 0,
  engineFds: 0,
  indexFds: 0,
  indexMb: 12,
};
const busyMs = forMs - (isShort ? SLICES * SLICE_REST_MS : 2 * REST_MS);
if (!(busyMs > 0)) throw new Error('pass --seconds N (30 or more), --minutes N (2 or more) or --hours N');

const inspectorPort = await freePort();
const stage = await openStage(KEEP_ALIVE_MS, { NODE_OPTIONS: `--inspect-port=${inspectorPort}` });
try {
  const { ours, direct } = stage.ways;
  // Where the engine is late on a busy machine, the guard tunnels, and the client sees the stand-in's own certificate.
  const way = { ...ours, ca: ours.ca + direct.ca };
  const before = await stage.daemon.status();
  const pids = { guard: before.pid, engine: before.engine.pid };
  const collector = await openCollector(pids.engine, inspectorPort);
  const telling =
    values.hours === undefined ? undefined : setInterval(() => void tell().catch(untold), TOLD_MS).unref();
  const turnsBefore = await busy(busyMs * WARM_UP);
  const growth = isShort ? await measureSlope() : await compareRests();
  clearInterval(telling);
  collector.close();
  const { requests, engine } = await stage.daemon.status();
  if (engine.pid !== pids.engine) throw new Error('the engine was restarted');
  console.log(`${requests.total} requests, ${requests.rewritten} rewritten, ${requests.failed_open} failed open`);
  console.log(`${turnsBefore} turns while warming up, ${growth.turns} after it`);
  if (!report(growth)) process.exitCode = 1;
  const amongMs = await askedAmongTunnels(way);
  console.log(`a new request among 1,000 idle tunnels: ${amongMs.toFixed(1)} ms (p50, its connection included)`);

  async function compareRests(): Promise<Growth> {
    const start = await rest(REST_MS);
    const turns = await busy(busyMs * (1 - WARM_UP));
    return { start, end: await rest(REST_MS), turns };
  }

  async function measureSlope(): Promise<Growth> {
    const readings: Reading[] = [];
    let turns = 0;
    for (let slice = 0; slice < SLICES; slice += 1) {
      turns += await busy((busyMs * (1 - WARM_UP)) / SLICES);
      readings.push(await rest(SLICE_REST_MS));
    }
    return { ...fittedEnds(readings), turns };
  }

  async function busy(ms: number): Promise<number> {
    const over = new AbortController();
    const timer = setTimeout(() => over.abort(), ms);
    try {
      return await keepBusy(way, over.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  async function tell(): Promise<void> {
    const { guardMb, engineMb, guardFds, engineFds } = await read(stage.daemon, pids);
    const { nodes } = await stage.daemon.status();
    const held = `guard ${guardMb} MB, ${guardFds} descriptors; engine ${engineMb} MB, ${engineFds} descriptors`;
    const onDisk = Object.entries(await keptMb(stage.daemon.home)).map(([what, mb]) => `${what} ${mb.toFixed(1)}`);
    console.log(`${new Date().toISOString().slice(11, 19)}  ${held}; ${nodes} nodes; MB on disk: ${onDisk.join(', ')}`);
  }

  function untold(error: Error): void {
    console.log(`no reading: ${error.message.split('\n')[0]}`);
  }

  /** The lowest of each reading once memory holds every turn. */
  async function rest(ms: number): Promise<Reading> {
    await stage.daemon.flush();
    if (isShort) await collector.collect();
    const readings: Reading[] = [];
    const everyMs = Math.min(BETWEEN_MS, ms / 3);
    for (let nth = 1; nth * everyMs <= ms; nth += 1) {
      await after(everyMs);
      if (nth % COLLECT_EVERY === 0) await collector.collect();
      readings.push(await read(stage.daemon, pids));
    }
    return getLowest(readings);
  }
} finally {
  await stage.close();
}

interface Growth {
  readonly start: Reading;
  readonly end: Reading;
  /** Between the two. */
  readonly turns: number;
}

function getLowest(readings: readonly Reading[]): Reading {
  return mapReading((name) => Math.min(...readings.map((reading) => reading[name])));
}

/** The ends of the line that fits the readings best: one high reading at the end is no growth. */
function fittedEnds(readings: readonly Reading[]): Pick<Growth, 'start' | 'end'> {
  const middle = (readings.length - 1) / 2;
  const spread = readings.reduce((sum, _, at) => sum + (at - middle) ** 2, 0);
  const mean = mapReading((name) => readings.reduce((sum, reading) => sum + reading[name], 0) / readings.length);
  const slope = mapReading((name) => readings.reduce((sum, each, at) => sum + (at - middle) * each[name], 0) / spread);
  return {
    start: mapReading((name) => mean[name] - middle * slope[name]),
    end: mapReading((name) => mean[name] + middle * slope[name]),
  };
}

function mapReading(compute: (name: keyof Reading) => number): Reading {
  return {
    guardMb: compute('guardMb'),
    engineMb: compute('engineMb'),
    guardFds: compute('guardFds'),
    engineFds: compute('engineFds'),
    indexFds: compute('indexFds'),
    indexMb: compute('indexMb'),
  };
}

/** Whether nothing grew by more than it may. */
function report({ start, end, turns }: Growth): boolean {
  let ok = true;
  for (const name of Object.keys(MOST) as (keyof typeof MOST)[]) {
    const allowed = MOST[name] + (turns * TURN_KB[name]) / 1_024;
    const grew = end[name] - start[name];
    const [from, to] = [start[name], end[name]].map((value) => value.toFixed(1).padStart(6));
    const because = TURN_KB[name] === 0 ? '' : ` (${MOST[name]}, and ${TURN_KB[name]} KB for each turn kept)`;
    console.log(
      `${grew <= allowed ? 'ok   ' : 'GREW '} ${name.padEnd(9)} at rest ${from}, at the end ${to}: ${grew.toFixed(1)} of ${allowed.toFixed(1)}${because}`,
    );
    ok &&= grew <= allowed;
  }
  return ok;
}
