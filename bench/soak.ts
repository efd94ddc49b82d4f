import { setTimeout as after } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openStage } from './latency/stage.ts';
import { keptMb, type Reading, read } from './soak/readings.ts';
import { askedAmongTunnels, keepBusy } from './soak/traffic.ts';

/**
 * `npm run soak -- --hours N | --minutes N`: one daemon under mixed load, at rest for 45 seconds after warming up
 * and again at the end. What the least reading of the second rest is above the least of the first is growth: under
 * load readings follow the load and the collector, at rest they do not. With `--hours` a reading each minute shows
 * how it goes. Ends with 1 where something grew, or a request failed.
 */

const MOST = { guardMb: 10, engineMb: 10, guardFds: 0, engineFds: 0, indexMb: 10 } as const;
/**
 * What stays of each turn that was kept meanwhile: text, words, vectors, its nodes. Of memory 19 KB were measured after
 * collecting, caches that had not come to their bounds by then included.
 */
const TURN_KB = { guardMb: 0, engineMb: 20, guardFds: 0, engineFds: 0, indexMb: 12 } as const;
const WARM_UP = 0.5;
/** V8 takes some ten seconds to notice that nothing happens, then gives back what it holds in reserve. */
const REST_MS = 45_000;
/** On a busy machine later: what is too much at the end has so much longer to go. A leak stays. */
const PATIENCE_MS = 120_000;
const MINUTES = 4;
const BETWEEN_MS = 1_000;
const TOLD_MS = 60_000;
/** Idle connections to the stand-in are gone well before a rest is over. */
const KEEP_ALIVE_MS = 5_000;

const { values } = parseArgs({ options: { hours: { type: 'string' }, minutes: { type: 'string' } } });
const forMs = Number(values.hours ?? 0) * 3_600_000 + Number(values.minutes ?? (values.hours ? 0 : MINUTES)) * 60_000;
const busyMs = forMs - 2 * REST_MS;
if (!(busyMs > 0)) throw new Error('say how long, two minutes at least: --hours N or --minutes N');

const stage = await openStage(KEEP_ALIVE_MS);
try {
  const { ours, direct } = stage.ways;
  // Where the engine is late on a busy machine, the guard tunnels, and the client sees the stand-in's own certificate.
  const way = { ...ours, ca: ours.ca + direct.ca };
  const before = await stage.daemon.status();
  const pids = { guard: before.pid, engine: before.engine.pid };
  const telling =
    values.hours === undefined ? undefined : setInterval(() => void tell().catch(untold), TOLD_MS).unref();
  const turnsBefore = await busy(busyMs * WARM_UP);
  const start = await rest();
  const turns = await busy(busyMs * (1 - WARM_UP));
  const end = await rest((least) => grown(start, least, turns).every(({ ok }) => ok));
  clearInterval(telling);
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
  async function rest(isEnough: (least: Reading) => boolean = () => true): Promise<Reading> {
    await stage.daemon.flush();
    const readings: Reading[] = [];
    for (let atMs = 0; atMs < REST_MS + PATIENCE_MS; atMs += BETWEEN_MS) {
      if (atMs >= REST_MS && isEnough(leastOf(readings))) break;
      await after(BETWEEN_MS);
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

interface Growth {
  readonly name: keyof Reading;
  readonly allowed: number;
  readonly ok: boolean;
}

function grown(start: Reading, end: Reading, turns: number): Growth[] {
  return (Object.keys(MOST) as (keyof typeof MOST)[]).map((name) => {
    const allowed = MOST[name] + (turns * TURN_KB[name]) / 1_024;
    return { name, allowed, ok: end[name] - start[name] <= allowed };
  });
}

/** Whether nothing grew by more than it may. */
function report(start: Reading, end: Reading, turns: number): boolean {
  const rows = grown(start, end, turns);
  for (const { name, allowed, ok } of rows) {
    const [from, to] = [start[name], end[name]].map((value) => value.toFixed(1).padStart(6));
    const because = TURN_KB[name] === 0 ? '' : ` (${MOST[name]}, and ${TURN_KB[name]} KB for each turn kept)`;
    const grew = (end[name] - start[name]).toFixed(1);
    console.log(
      `${ok ? 'ok   ' : 'GREW '} ${name.padEnd(9)} at rest ${from}, at the end ${to}: ${grew} of ${allowed.toFixed(1)}${because}`,
    );
  }
  return rows.every(({ ok }) => ok);
}
