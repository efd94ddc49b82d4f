import { createConversation, lone, stranger } from './latency/conversation.ts';
import type { Daemon } from './latency/daemon.ts';
import { demoMemory } from './latency/demo-memory.ts';
import { type FirstByte, measureFirstByte, type Ways } from './latency/first-byte.ts';
import { openStage } from './latency/stage.ts';
import { type Spread, spread } from './latency/stats.ts';
import { type Lateness, measureStreams } from './latency/streams.ts';
import { open, type Sent, timed, type Way } from './latency/way.ts';

/** `npm run bench:latency [-- --json]`: what comet-cc adds to a request, on this machine, now. */

const SIZES = [
  { bytes: 85_000, samples: 300, turns: 14 },
  { bytes: 1_000_000, samples: 100, turns: 30 },
];
const NEW_CONNECTIONS = 100;
const COMMANDS = 10;

interface Report {
  readonly node: string;
  readonly first_byte: readonly FirstByte[];
  readonly streams: { readonly direct: Lateness; readonly through: Lateness };
  readonly rss_mb: Record<string, { guard: number; engine: number }>;
  /** Of the engine, while the demo ran. */
  readonly demo_rss_mb: { readonly most: number; readonly last: number };
  readonly command_ms: Readonly<Record<string, Spread>>;
}

const stage = await openStage();
try {
  const report = await measure(stage.ways, stage.daemon);
  if (process.argv.includes('--json')) console.log(JSON.stringify(report, null, 2));
  else print(report);
} finally {
  await stage.close();
}

async function measure(ways: Ways, daemon: Daemon): Promise<Report> {
  const command = {
    'node alone': await times(() => daemon.nodeMs()),
    status: await times(() => daemon.commandMs(['status'])),
    env: await times(() => daemon.commandMs(['env', '--shell', 'json'])),
    statusline: await times(() => daemon.commandMs(['statusline'])),
    'hook, session-end': await times(() => daemon.hookMs('session-end')),
    'hook, user-prompt-submit': await times(() => daemon.hookMs('user-prompt-submit')),
    'hook, no engine': await times(() => daemon.hookMs('user-prompt-submit', 'alone')),
  };
  const first: FirstByte[] = [];
  const rss: Report['rss_mb'] = { started: await daemon.rss() };
  for (const { bytes, samples, turns } of SIZES) {
    const kinds = {
      pass_through: () => stranger(bytes),
      left_alone: () => lone(bytes),
      tool_loop: await talk(daemon, ways.ours, { bytes, turns }),
    };
    for (const request of ['pass_through', 'left_alone', 'tool_loop'] as const) {
      const make = kinds[request];
      first.push(await measureFirstByte(ways, { request, connection: 'kept', samples, make }));
      first.push(await measureFirstByte(ways, { request, connection: 'new', samples: NEW_CONNECTIONS, make }));
    }
    rss[`after_${bytes}`] = await daemon.rss();
  }
  const streams = {
    direct: await measureStreams(ways.direct, null),
    through: await measureStreams(ways.ours, ways.ours),
  };
  rss['after_streams'] = await daemon.rss();
  const demo = await demoMemory();
  return { node: process.version, first_byte: first, streams, rss_mb: rss, demo_rss_mb: demo, command_ms: command };
}

/**
 * Has a whole conversation of about `bytes`, until a cut is in force that the measured rounds only use; the result makes
 * requests of its tool loop.
 */
async function talk(daemon: Daemon, way: Way, size: { bytes: number; turns: number }): Promise<() => Sent> {
  const conversation = createConversation(Math.round(size.bytes / size.turns) - 400);
  const secure = await open(way);
  for (let at = 0; at < size.turns * 2; at += 1) await timed(secure, conversation.next());
  await daemon.flush();
  for (let at = 0; at < 3; at += 1) await timed(secure, conversation.next());
  for (let at = 0; at < 3; at += 1) await timed(secure, conversation.round());
  secure.destroy();
  return conversation.loop;
}

async function times(once: () => Promise<number>): Promise<Spread> {
  const taken: number[] = [];
  for (let at = 0; at < COMMANDS; at += 1) taken.push(await once());
  return spread(taken);
}

function print(report: Report): void {
  console.log(`Added time to first byte, ms (p50 / p95 / p99), Node ${report.node}`);
  for (const row of report.first_byte) {
    const what = `${row.request.padEnd(12)} ${row.connection.padEnd(4)} ${String(row.bytes).padStart(7)} B`;
    const { added_ms, bare_added_ms, direct_ms } = row;
    console.log(`${what}  comet-cc ${line(added_ms)}  bare ${line(bare_added_ms)}  direct itself ${line(direct_ms)}`);
  }
  const { direct, through } = report.streams;
  console.log(`Lateness of ${through.chunks} chunks of 50 streams, ms, memory at work: ${late(through)}`);
  console.log(`The same straight to the stand-in: ${late(direct)}`);
  for (const [when, { guard, engine }] of Object.entries(report.rss_mb)) {
    console.log(`Resident, ${when}: guard ${guard} MB, engine ${engine} MB`);
  }
  console.log(`Resident, demo: engine ${report.demo_rss_mb.last} MB at its end, ${report.demo_rss_mb.most} MB at most`);
  for (const [name, taken] of Object.entries(report.command_ms)) console.log(`Command, ${name}: ${line(taken)} ms`);
}

function late(of: Lateness): string {
  return `${line(of)}, latest ${of.max.toFixed(1)}`;
}

function line({ p50, p95, p99 }: Spread): string {
  return [p50, p95, p99].map((value) => value.toFixed(1).padStart(5)).join(' /');
}
