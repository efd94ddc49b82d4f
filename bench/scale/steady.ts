import { readTurn } from '../../memory/ingest/turn-trust.ts';
import type { IndexRow, Lane, SearchIndex } from '../../memory/search/search-index.ts';
import { getRows } from '../../memory/storage/index-writer.ts';
import { nowMs, type Spread, spread } from '../latency/stats.ts';
import { createCorpus, getNode, PROJECT_DIR, turnAt } from './corpus.ts';
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
/** As recall asks. */
const LANES: readonly Lane[] = ['raw', 'window', 'meaning', 'fact', 'factMeaning', 'fts', 'summary'];
const MB = 1024 * 1024;

const [turns, appends, dir] = [Number(process.argv[2]), Number(process.argv[3]), process.argv[4] ?? ''];
console.log(JSON.stringify(await run()));

/** One node a commit, nothing waiting beside it: the way of writing that an index stands worst. */
async function run(): Promise<SteadyReport> {
  const { index, close } = await openIndex(dir);
  const megabytes = (): number => diskBytes(dir).bytes / MB;
  const before = { search: await searched(index, SEARCHES), disk: megabytes() };
  const [appendTimes, during]: [number[], number[]] = [[], []];
  let peak = before.disk;
  const every = Math.max(1, Math.floor(appends / 20));
  let done = 0;
  for (const rows of freshNodes()) {
    if (done === appends) break;
    const began = nowMs();
    await index.put(rows);
    appendTimes.push(nowMs() - began);
    done += 1;
    if (done % every !== 0) continue;
    during.push(...(await searched(index, SEARCHES_DURING)));
    peak = Math.max(peak, megabytes());
    console.error(`${done} rows, ${megabytes().toFixed(0)} MB, resident ${peakMb().toFixed(0)} MB`);
  }
  const after = { search: await searched(index, SEARCHES), disk: megabytes() };
  await index.optimize();
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

function* freshNodes(): Generator<readonly IndexRow[]> {
  for (let first = turns; ; first += 3) {
    const read = [0, 1, 2].map((nth) => readTurn(turnAt(first + nth)));
    const node = getNode(first, first + 3);
    const positions = read.map(
      ({ turnId }, at) => [turnId, { sessionId: node.session_id, position: first + at }] as const,
    );
    yield getRows(node, { turns: new Map(read.map((turn) => [turn.turnId, turn])), positions: new Map(positions) });
  }
}

async function searched(index: SearchIndex, count: number): Promise<number[]> {
  const corpus = createCorpus(turns);
  const times: number[] = [];
  for (let nth = 0; nth < count; nth += 1) {
    const began = nowMs();
    await index.search(corpus.question(nth).text, { project: PROJECT_DIR }, 400, LANES);
    times.push(nowMs() - began);
  }
  return times;
}
