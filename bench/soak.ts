import { setTimeout as after } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openStage } from './latency/stage.ts';
import { freePort, openCollector } from './soak/collector.ts';
import { keptMb, type Reading, read } from './soak/readings.ts';
import { askedAmongTunnels, keepBusy } from './soak/traffic.ts';

/**
 * `npm run soak -- --hours N | --minutes N`: one daemon under mixed load, at rest for 45 seconds after warming up
 * and again at the end, where the engine's garbage is collected through its inspector. What the least reading of the
 * second rest is above the least of the first is growth: under load readings follow the load and the collector. With
 * `--hours` a reading each minute shows how it goes. Ends with 1 where something grew, or a request failed.
 */

const MOST = { guardMb: 10, engineMb: 10, guardFds: 0, engineFds: 0, indexMb: 10 } as const;
/** Of the busy time: caches are full then, and code is compiled. */
const WARM_UP = 0.6;
/** Longer than the index waits before it tidies at rest. */
const REST_MS = 45_000;
const COLLECT_EVERY = 10;
const MINUTES = 5;
const BETWEEN_MS = 1_000;
const TOLD_MS = 60_000;
/** Idle connections to the stand-in are gone well before a rest is over. */
const KEEP_ALIVE_MS = 5_000;

const { values } = parseArgs({ options: { hours: { type: 'string' }, minutes: { type: 'string' } } });
const forMs = Number(values.hours ?? 0) * 3_600_000 + Number(values.minutes ?? (values.hours ? 0 : MINUTES)) * 60_000;
/**
 * What stays of each turn that was kept meanwhile: its rows on disk, and in memory what `bench:scale` measures of
 * 100,000 turns, its words, vectors and node. Of a run that is no longer than usual the 10 MB hold all of it.
 */
const TURN_KB = { guardMb: 0, engineMb: forMs > MINUTES * 60_000 ? 4 : 0, guardFds: 0, engineFds: 0, indexMb: 12 };
const busyMs = forMs - 2 * REST_MS;
if (!(busyMs > 0)) throw new Error('say how long, two minutes at least: --hours N or --minutes N');

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
  const start = await rest();
  const turns = await busy(busyMs * (1 - WARM_UP));
  const end = await rest();
  clearInterval(telling);
  collector.close();
  const { requests, engine } = await stage.daemon.status();
  if (engine.pid !== pids.engine) throw new Error('the engine was started anew');
  console.log(`${requests.total} requests, ${requests.rewritten} rewritten, ${requests.failed_open} failed open`);
  console.log(`${turnsBefore} turns while warming up, ${turns} after it`);
  if (!report(start, end, turns)) process.exitCode = 1;
  const amongMs = await askedAmongTunnels(way);
  console.log(`a new request among 1,000 idle tunnels: ${amongMs.toFixed(1)} ms (p50, its connection included)`);

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

  /** The least of each reading once all that came in is in memory. */
  async function rest(): Promise<Reading> {
    await stage.daemon.flush();
    const readings: Reading[] = [];
    for (let nth = 1; nth * BETWEEN_MS <= REST_MS; nth += 1) {
      await after(BETWEEN_MS);
      if (nth % COLLECT_EVERY === 0) await collector.collect();
      readings.push(await read(stage.daemon, pids));
    }
    return leastOf(readings);
  }
} finally {
  await stage.close();
}

function leastOf(readings: readonly Reading[]): Reading {
  const least = (name: keyof Reading): number => Math.min(...readings.map((reading) => reading[name]));
  return {
    guardMb: least('guardMb'),
    engineMb: least('engineMb'),
    guardFds: least('guardFds'),
    engineFds: least('engineFds'),
    indexMb: least('indexMb'),
  };
}

/** Whether nothing grew by more than it may. */
function report(start: Reading, end: Reading, turns: number): boolean {
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
