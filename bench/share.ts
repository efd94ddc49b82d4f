/**
 * Memory on three machines over an S3 server on loopback, in one process with it.
 *
 *   npm run bench:share -- [--nodes 10000] [--added 100] [--turns 3000] [--json]
 *
 * Each machine has nodes of its own. The first publishes them, the others join: what they publish and read is timed.
 * Then `--added` nodes are made on the first and read by the second, five times. Recall is timed on the third machine
 * while nothing is exchanged, while it exchanges once a second, and without a pause. Bytes are those of the bucket's objects
 * and of the node files of all machines. Then a machine publishes `--turns` verbatim turns below memories of five turns
 * each, and another reads them.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { setImmediate as nextTurn, setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { systemClock } from '../common/async.ts';
import { Config } from '../common/config.ts';
import { silentLog } from '../common/log.ts';
import { homePaths } from '../common/paths.ts';
import { type Memory, openBudget, openMemory, type ShareSettings, type Sharing } from '../memory/index.ts';
import type { MemoryNode } from '../memory/model/node.ts';
import { renderArchive } from '../memory/storage/archive.ts';
import { openJournal } from '../memory/storage/fs/turn-log.ts';
import { createRedactor } from '../redact/index.ts';
import { makeNode } from '../test/helpers/nodes.ts';
import type { S3Server } from '../test/helpers/s3-server.ts';
import { spread } from './latency/stats.ts';

const ROUNDS = 5;
const QUERIES = 100;
const IDLE_EXCHANGES = 10;
/** By default they exchange every five minutes: once a second is 300 times as often. */
const PAUSES = [
  { what: 'quiet', pauseMs: null },
  { what: 'an exchange a second', pauseMs: 1_000 },
  { what: 'exchanges without a pause', pauseMs: 0 },
] as const;
const PROJECT = '/home/dev/shop';
const WORDS =
  'gateway timeout retry ledger invoice postgres replica cursor parser token cache shard leaf socket daemon queue batch index schema migration'.split(
    ' ',
  );

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '10000' },
    added: { type: 'string', default: '100' },
    turns: { type: 'string', default: '3000' },
    json: { type: 'boolean', default: false },
  },
});
const count = Number(values.nodes);
const added = Number(values.added);
const config = Config.parse({ llm: 'local', compaction: { idleMs: 0 }, dream: { idleMinutes: 0, at: '' } });
const root = await mkdtemp(path.join(os.tmpdir(), 'comet-share-'));
const thread = new Worker(new URL('./share-server.js', import.meta.url), { workerData: path.join(root, 'buckets') });
const [server] = (await once(thread, 'message')) as [Pick<S3Server, 'uri' | 'env'>];

async function requests(): Promise<ReturnType<S3Server['requests']>> {
  thread.postMessage('requests');
  const [counted] = await once(thread, 'message');
  return counted;
}

interface Machine {
  readonly memory: Memory;
  readonly sharing: Sharing;
  readonly home: string;
}

async function openMachine(name: string, raw = false): Promise<Machine> {
  const home = path.join(root, name);
  const redactor = createRedactor({ markKey: Buffer.alloc(32, 7) });
  const store = { load: async () => null, save: async () => {} };
  const budget = await openBudget({ rule: config.models, store, clock: systemClock, log: silentLog });
  let settings: ShareSettings = {
    url: '',
    scope: 'me',
    projects: [],
    trusted: [],
    name,
    raw,
    intervalMinutes: 0,
  };
  const share = {
    settings: () => settings,
    keepSettings: async (changed: Partial<ShareSettings>) => {
      settings = { ...settings, ...changed };
    },
    isForbidden: () => false,
    ownEnv: {},
  };
  const claudeEnvironment = { env: {}, bundleFile: '', userCa: '', userProxy: {} };
  const parts = { env: { ...process.env, ...server.env }, paths: homePaths(home), redactor, budget, usage: budget };
  const { sharing, ...memory } = await openMemory({ ...parts, claudeEnvironment, log: silentLog, config, share });
  return { memory, sharing: sharing as Sharing, home };
}

let made = 0;
function madeNodes(size: number): MemoryNode[] {
  return Array.from({ length: size }, () => {
    made += 1;
    const id = made.toString(16).padStart(6, '0');
    const at = new Date(Date.UTC(2026, 0, 1) + made * 60_000).toISOString();
    const word = (step: number): string => WORDS[(made * step + step) % WORDS.length] as string;
    const said = `the ${word(3)} of the ${word(7)} ${word(11)} is ${made}, because the ${word(13)} ${word(17)} needs it`;
    const text = `${said}; ${said.replace('the', 'every')} and the ${word(19)} was measured at ${made * 7} ms`;
    return makeNode({
      ...{ node_id: `mem_20260101_101500_${id}`, session_id: `s-${Math.ceil(made / 20)}`, project: PROJECT },
      ...{ summary: text, trigger: `When I work on ${said}`, written_by: 'claude', turns: [`turn-${made}`] },
      ...{ valid_from: at, created_at: at },
    });
  });
}

async function fill({ memory }: Machine, size: number): Promise<void> {
  await memory.imports.importArchive(renderArchive({ nodes: madeNodes(size), briefs: [] }, 'jsonl'));
}

const TURNS_EACH = 5;
const SESSION_TURNS = 50;

/** A journal of some 2 KB a turn, as a home has it before memory opens. */
async function writeTurns(home: string, size: number): Promise<MemoryNode[]> {
  const journal = await openJournal({ dir: homePaths(home).journalDir, report: () => {} });
  const getId = (at: number): string => createHash('sha256').update(`turn ${at}`).digest('hex');
  const getText = (at: number, words: number): string =>
    Array.from({ length: words }, (_, nth) => `${WORDS[(at * 7 + nth * (nth + at)) % WORDS.length]} ${at * nth}`).join(
      ' ',
    );
  const getSession = (at: number): string => `raw-${Math.floor(at / SESSION_TURNS)}`;
  for (let from = 0; from < size; from += SESSION_TURNS) {
    const turns = Array.from({ length: Math.min(SESSION_TURNS, size - from) }, (_, nth) => from + nth);
    await Promise.all(
      turns.map((at) =>
        journal.append({
          ...{
            key: getId(at),
            turnId: getId(at),
            sessionId: getSession(at),
            projectDir: PROJECT,
            model: 'claude-opus-5-5',
          },
          ...{ atMs: Date.UTC(2026, 0, 1) + at * 60_000, project: PROJECT, redacted: false },
          messages: (['user', 'assistant'] as const).map((role, nth) => {
            const content = JSON.stringify(getText(at, nth === 0 ? 20 : 150));
            return { role, content, sha256: createHash('sha256').update(content).digest('hex') };
          }),
        }),
      ),
    );
  }
  await journal.close();
  const nodes = madeNodes(Math.ceil(size / TURNS_EACH));
  return nodes.map((node, nth) => {
    const covered = Array.from({ length: TURNS_EACH }, (_, each) => nth * TURNS_EACH + each).filter((at) => at < size);
    return { ...node, session_id: getSession(nth * TURNS_EACH), turns: covered.map(getId) };
  });
}

/** Longest time between two turns of the event loop, and most memory of the process, while work runs. */
async function watchedRun(work: () => Promise<unknown>) {
  const delays = monitorEventLoopDelay({ resolution: 10 });
  const before = performance.eventLoopUtilization();
  const cpuBefore = process.cpuUsage();
  let most = 0;
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, 200);
  delays.enable();
  const { ms } = await timed(work);
  delays.disable();
  clearInterval(timer);
  const held = { p99: delays.percentile(99) / 1e6, max: delays.max / 1e6 };
  const { active: busy } = performance.eventLoopUtilization(before);
  const { user, system } = process.cpuUsage(cpuBefore);
  return { ms, busy, cpu: (user + system) / 1_000, rss: most, held };
}

/** Publishes and reads verbatim turns. */
async function exchangeTurns(url: string, size: number) {
  const raw: Machine[] = [];
  const runs: Awaited<ReturnType<typeof watchedRun>>[] = [];
  try {
    for (const name of ['raw-desktop', 'raw-laptop']) {
      const nodes = name === 'raw-desktop' ? await writeTurns(path.join(root, name), size) : [];
      const machine = await openMachine(name, true);
      raw.push(machine);
      await machine.memory.imports.importArchive(renderArchive({ nodes, briefs: [] }, 'jsonl'));
      await machine.memory.maintenance.flush(1_200_000);
      const isFirst = raw.length === 1;
      const joining = { url, scope: isFirst ? ('me' as const) : null, projects: null, name };
      runs.push(await watchedRun(() => machine.sharing.join(joining, isFirst, {})));
    }
    const shared = path.join('share', 'state.jsonl');
    const state = await Promise.all(raw.map(async ({ home }) => (await stat(path.join(home, shared))).size));
    const journals = await Promise.all(raw.map(({ home }) => bytesBelow(homePaths(home).journalDir)));
    return { turns: size, runs, state, journals };
  } finally {
    for (const { memory } of raw) await memory.maintenance.close();
  }
}

async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; result: T }> {
  const startMs = performance.now();
  const result = await work();
  return { ms: performance.now() - startMs, result };
}

/** Exchanges until it is told to stop, which returns how many there were. */
function startExchanges({ sharing }: Machine, pauseMs: number): () => Promise<number> {
  const over = new AbortController();
  const done = (async () => {
    for (let exchanges = 0; ; exchanges += 1) {
      if (over.signal.aborted) return exchanges;
      await sharing.exchange();
      if (pauseMs > 0) await setTimeout(pauseMs, undefined, { signal: over.signal }).catch(() => undefined);
    }
  })();
  return () => {
    over.abort();
    return done;
  };
}

async function recallTimes({ memory }: Machine): Promise<number[]> {
  const times: number[] = [];
  for (let at = 0; at < QUERIES; at += 1) {
    const query = `which ${WORDS[at % WORDS.length]} does the ${WORDS[(at * 7) % WORDS.length]} need for ${at * 37}`;
    times.push((await timed(() => memory.recall.search(query, { top: 8, projectDir: PROJECT }))).ms);
    await nextTurn();
  }
  return times;
}

async function bytesBelow(dir: string): Promise<number> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
  const sizes = await Promise.all(files.map(async (file) => (await stat(file)).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

const machines: Machine[] = [];
try {
  const url = `${server.uri}/bench`;
  const join = ({ sharing }: Machine, name: string, isFirst: boolean) =>
    sharing.join({ url, scope: isFirst ? 'me' : null, projects: null, name }, isFirst, {});
  const joins: { machine: string; published: number; read: number; ms: number }[] = [];
  for (const [at, name] of ['desktop', 'laptop', 'box'].entries()) {
    const machine = await openMachine(name);
    machines.push(machine);
    await fill(machine, count);
    const { ms } = await timed(() => join(machine, name, at === 0));
    joins.push({ machine: name, published: count, read: at * count, ms });
  }
  const [desktop, laptop, box] = machines as [Machine, Machine, Machine];
  const steady: { push: number; pull: number }[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await laptop.sharing.pull({});
    await fill(desktop, added);
    const push = await timed(() => desktop.sharing.push({}));
    const pull = await timed(() => laptop.sharing.pull({}));
    if (pull.result !== added) throw new Error(`${pull.result} of ${added} memories came`);
    steady.push({ push: push.ms, pull: pull.ms });
  }
  await laptop.sharing.pull({});
  const counted = async (work: () => Promise<unknown>) => {
    const before = await requests();
    await work();
    const after = await requests();
    return {
      writes: after.writes - before.writes,
      lists: after.lists - before.lists,
      reads: after.reads - before.reads,
    };
  };
  const pullRequests = await counted(() => laptop.sharing.pull({}));
  await fill(desktop, 1);
  const pushRequests = await counted(() => desktop.sharing.push({}));
  const newsRequests = await counted(() => laptop.sharing.pull({}));
  await box.sharing.pull({});
  await box.memory.maintenance.flush(1_200_000);
  await box.sharing.push({});
  await box.sharing.exchange();
  const idleRequests = await counted(() => box.sharing.exchange());
  const idle = await watchedRun(async () => {
    for (let turns = 0; turns < IDLE_EXCHANGES; turns += 1) await box.sharing.exchange();
  });
  await recallTimes(box);
  // Each in turn, so that what else the machine does meanwhile counts for all of them.
  const rounds: { what: string; ms: number[]; exchanges: number }[] = PAUSES.map(({ what }) => ({
    what,
    ms: [],
    exchanges: 0,
  }));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [at, { pauseMs }] of PAUSES.entries()) {
      const stop = pauseMs === null ? async () => 0 : startExchanges(box, pauseMs);
      rounds[at]?.ms.push(...(await recallTimes(box)));
      (rounds[at] as { exchanges: number }).exchanges += await stop();
    }
  }
  const { problem } = (await box.sharing.status()) ?? { problem: 'nothing is shared' };
  if (problem !== '') throw new Error(problem);
  const recall = rounds.map(({ what, ms, exchanges }) => ({ what, ...spread(ms), exchanges }));
  const local = await Promise.all(machines.map(({ home }) => bytesBelow(homePaths(home).nodesDir)));
  const bucket = await bytesBelow(path.join(root, 'buckets'));
  const own = local.reduce((sum, size) => sum + size, 0) / machines.length;
  for (const { memory } of machines.splice(0)) await memory.maintenance.close();
  const raw = Number(values.turns) > 0 ? await exchangeTurns(`${server.uri}/raw`, Number(values.turns)) : null;
  const report = {
    raw,
    ...{ nodes: count, joins, steady, idle, recall_ms: recall },
    bytes: { bucket, local: own },
    requests: {
      'pull without news': pullRequests,
      'push of one memory': pushRequests,
      'pull of one memory': newsRequests,
      'exchange without news': idleRequests,
    },
  };
  if (values.json) console.log(JSON.stringify(report, null, 2));
  else print(report);
} finally {
  for (const { memory } of machines) await memory.maintenance.close();
  await thread.terminate();
  await rm(root, { recursive: true, force: true });
}

function print(report: {
  readonly raw: Awaited<ReturnType<typeof exchangeTurns>> | null;
  readonly joins: readonly { machine: string; published: number; read: number; ms: number }[];
  readonly steady: readonly { push: number; pull: number }[];
  readonly idle: Awaited<ReturnType<typeof watchedRun>>;
  readonly recall_ms: readonly { what: string; p50: number; p95: number; exchanges: number }[];
  readonly bytes: { readonly bucket: number; readonly local: number };
  readonly requests: Readonly<Record<string, { writes: number; lists: number; reads: number }>>;
}): void {
  for (const { machine, published, read, ms } of report.joins)
    console.log(`${machine.padEnd(8)} joins: ${read} read, ${published} published in ${(ms / 1_000).toFixed(1)} s`);
  const of = (pick: (round: { push: number; pull: number }) => number): string =>
    report.steady.map((round) => pick(round).toFixed(0)).join(', ');
  console.log(`${added} new: published in ${of(({ push }) => push)} ms, read in ${of(({ pull }) => pull)} ms`);
  const each = (ms: number): string => `${(ms / IDLE_EXCHANGES).toFixed(0)} ms`;
  const { ms: idleMs, busy: idleBusy, cpu: idleCpu, held: idleHeld } = report.idle;
  console.log(
    `exchange without news: ${each(idleMs)}, event loop busy ${each(idleBusy)}, processor ${each(idleCpu)} with the server's, held at most ${idleHeld.max.toFixed(0)} ms`,
  );
  for (const { what, p50, p95, exchanges } of report.recall_ms)
    console.log(
      `recall, ${what.padEnd(26)} p50 ${p50.toFixed(1)}, p95 ${p95.toFixed(1)} ms (${exchanges} exchanges in ${ROUNDS * QUERIES} recalls)`,
    );
  const { bucket, local } = report.bytes;
  console.log(
    `bytes: bucket ${(bucket / 1e6).toFixed(1)} MB, node files ${(local / 1e6).toFixed(1)} MB, ${(bucket / local).toFixed(2)} times`,
  );
  for (const [what, { writes, lists, reads }] of Object.entries(report.requests))
    console.log(`requests, ${what}: ${writes} writes, ${lists} lists, ${reads} reads`);
  if (report.raw === null) return;
  const { turns, runs, state, journals } = report.raw;
  for (const [at, { ms, rss, held }] of runs.entries()) {
    const what = at === 0 ? 'published' : 'read';
    const sizes = `journal ${(Number(journals[at]) / 1e6).toFixed(1)} MB, state ${(Number(state[at]) / 1e6).toFixed(1)} MB`;
    const loop = `event loop held p99 ${held.p99.toFixed(0)}, at most ${held.max.toFixed(0)} ms`;
    console.log(
      `${turns} turns ${what} in ${(ms / 1_000).toFixed(1)} s; ${loop}; ${(rss / 1e6).toFixed(0)} MB; ${sizes}`,
    );
  }
}
