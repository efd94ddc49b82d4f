import { rowsOf } from '../../memory/compaction/build-nodes.ts';
import { readTurn } from '../../memory/ingest/turn-trust.ts';
import type { IndexRow, Lane, NodeIndex } from '../../memory/search/node-index.ts';
import { nowMs, type Spread, spread } from '../latency/stats.ts';
import { createCorpus, nodeOf, PROJECT_DIR, turnAt } from './corpus.ts';
import { diskBytes, openIndex, peakMb } from './stage.ts';

export interface SteadyReport {
  readonly appends: number;
  readonly append_ms: Spread;
  readonly search_ms: {
    readonly before: Spread;
    readonly during: Spread;
    readonly after: Spread;
    readonly fresh: Spread;
  };
  readonly disk_mb: { readonly before: number; readonly peak: number; readonly after: number; readonly fresh: number };
  readonly rss_peak_mb: number;
}

const SEARCHES = 100;
const SEARCHES_DURING = 5;
/** As recall asks, where its weights are not changed. */
const IDLE: ReadonlySet<Lane> = new Set<Lane>(['entity', 'trigger']);
const MB = 1024 * 1024;

const [turns, appends, dir] = [Number(process.argv[2]), Number(process.argv[3]), process.argv[4] ?? ''];
console.log(JSON.stringify(await run()));

/** One row a commit, nothing waiting beside it: the way of writing that an index stands worst. */
async function run(): Promise<SteadyReport> {
  const { index, close } = await openIndex(dir);
  const megabytes = (): number => diskBytes(dir).bytes / MB;
  const before = { search: await searched(index, SEARCHES), disk: megabytes() };
  const [appendTimes, during]: [number[], number[]] = [[], []];
  let peak = before.disk;
  const every = Math.max(1, Math.floor(appends / 20));
  let done = 0;
  for (const row of freshRows()) {
    if (done === appends) break;
    const began = nowMs();
    await index.upsert([row]);
    appendTimes.push(nowMs() - began);
    done += 1;
    if (done % every !== 0) continue;
    during.push(...(await searched(index, SEARCHES_DURING)));
    peak = Math.max(peak, megabytes());
    console.error(`${done} rows, ${megabytes().toFixed(0)} MB, resident ${peakMb().toFixed(0)} MB`);
  }
  const after = { search: await searched(index, SEARCHES), disk: megabytes() };
  await index.purge();
  const fresh = { search: await searched(index, SEARCHES), disk: megabytes() };
  await close();
  return {
    appends: done,
    append_ms: spread(appendTimes),
    search_ms: {
      before: spread(before.search),
      during: spread(during),
      after: spread(after.search),
      fresh: spread(fresh.search),
    },
    disk_mb: { before: before.disk, peak, after: after.disk, fresh: fresh.disk },
    rss_peak_mb: peakMb(),
  };
}

function* freshRows(): Generator<IndexRow> {
  for (let first = turns; ; first += 3) {
    const turns = new Map([0, 1, 2].map((nth) => readTurn(turnAt(first + nth))).map((turn) => [turn.turnId, turn]));
    yield* rowsOf(nodeOf(first, first + 3), { turns, before: new Map() });
  }
}

async function searched(index: NodeIndex, count: number): Promise<number[]> {
  const corpus = createCorpus(turns);
  const times: number[] = [];
  for (let nth = 0; nth < count; nth += 1) {
    const began = nowMs();
    await index.search(corpus.question(nth).text, { filter: { project: PROJECT_DIR }, limit: 40, without: IDLE });
    times.push(nowMs() - began);
  }
  return times;
}
