import { setTimeout as after } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openStage } from './latency/stage.ts';
import { nowMs } from './latency/stats.ts';
import { type Reading, read } from './soak/readings.ts';
import { keepBusy } from './soak/traffic.ts';

/**
 * `npm run soak -- --hours N | --minutes N`: one daemon under mixed load. After warming up for two fifths of the time
 * nothing may grow: what the least reading of the last fifth is above the least of the middle one is growth, because
 * readings go up and down with the load. Ends with 1 where something grew, or a request failed.
 */

const MOST = { guardMb: 10, engineMb: 10, guardFds: 0, engineFds: 0, indexMb: 10 } as const;
const BETWEEN_MS = 1_000;

const { values } = parseArgs({ options: { hours: { type: 'string' }, minutes: { type: 'string' } } });
const forMs = Number(values.hours ?? 0) * 3_600_000 + Number(values.minutes ?? (values.hours ? 0 : 3)) * 60_000;
if (!(forMs > 0)) throw new Error('say how long: --hours N or --minutes N');

const stage = await openStage();
const readings: Reading[] = [];
try {
  const before = await stage.daemon.status();
  const pids = { guard: before.pid, engine: before.engine.pid };
  const over = new AbortController();
  const traffic = keepBusy(stage.ways.ours, over.signal);
  // Awaited below; until then a failure must not end the process without its report.
  traffic.catch(() => over.abort());
  const fromMs = nowMs();
  while (nowMs() - fromMs < forMs && !over.signal.aborted) {
    readings.push(await read(stage.daemon, pids, nowMs() - fromMs));
    await after(Math.max(BETWEEN_MS, forMs / 1_000));
  }
  over.abort();
  await traffic;
  const { requests, engine } = await stage.daemon.status();
  if (engine.pid !== pids.engine) throw new Error('the engine was started anew');
  console.log(`${requests.total} requests, ${requests.rewritten} rewritten, ${requests.failed_open} failed open`);
  if (!report()) process.exitCode = 1;
} finally {
  await stage.close();
}

/** Whether nothing grew by more than it may. */
function report(): boolean {
  const part = (from: number, to: number): Reading[] =>
    readings.filter(({ atMs }) => atMs >= from * forMs && atMs < to * forMs);
  const rows = (Object.keys(MOST) as (keyof typeof MOST)[]).map((name) => {
    const least = (of: Reading[]): number => Math.min(...of.map((reading) => reading[name]));
    const [start, end] = [least(part(0.4, 0.6)), least(part(0.8, 1))];
    const most = Math.max(...readings.map((reading) => reading[name]));
    return { name, start, end, most, ok: end - start <= MOST[name] };
  });
  for (const { name, start, end, most, ok } of rows) {
    const figures = [start, end, most].map((value) => value.toFixed(1).padStart(7));
    console.log(
      `${ok ? 'ok   ' : 'GREW '} ${name.padEnd(10)} after warm-up ${figures[0]}, at the end ${figures[1]}, most ${figures[2]}`,
    );
  }
  return rows.every(({ ok }) => ok);
}
