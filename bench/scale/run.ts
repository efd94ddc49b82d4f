import { setTimeout as sleep } from 'node:timers/promises';
import { readTurn } from '../../memory/ingest/turn-trust.ts';
import type { SearchIndex } from '../../memory/search/search-index.ts';
import { getRows } from '../../memory/storage/index-writer.ts';
import { nowMs, type Spread, spread } from '../latency/stats.ts';
import { createCorpus, getNode, PROJECT_DIR, turnAt } from './corpus.ts';
import { diskBytes, openCorpusMemory, peakMb } from './stage.ts';

export interface ScaleReport {
  readonly turns: number;
  readonly nodes: number;
  readonly rows: number;
  /** The most that was resident, the tidying in the silence after it included. */
  readonly ingest: { readonly seconds: number; readonly turns_per_second: number; readonly peak_mb: number };
  /** From the files and the index of an earlier run to the first answer. */
  readonly open_ms: number;
  /** One recall, with everything optimized and with as many fresh commits as there can be. */
  readonly retrieve_ms: { readonly optimized: Asked; readonly fresh: Asked };
  /** One explicit search, of questions as they are typed: most lack their last words. */
  readonly search_ms: Asked;
  /** Questions whose turn's node is among the first ten. */
  readonly found_at_10: number;
  readonly disk_mb: number;
  readonly files: number;
  /** `resting` as the engine is after a long pause. */
  readonly rss_mb: { readonly asked: number; readonly resting: number; readonly peak: number };
}

interface Asked extends Spread {
  /** Processor time of one recall, all threads. */
  readonly cpu: number;
}

const QUESTIONS = 200;
/** The next commit would be followed by an optimization. */
const FRESH_COMMITS = 15;
const TURNS_PER_NODE = 3;
const SILENCE_MS = 2_000;
const TYPED_CHARS = 8;
const MB = 1024 * 1024;

/** Run as a process of its own, so that nothing of another size is in its memory: prints a `ScaleReport`. */
const [phase, turns, dir] = [process.argv[2], Number(process.argv[3]), process.argv[4] ?? ''];
if (phase === 'ingest') console.log(JSON.stringify(await ingest()));
else console.log(JSON.stringify(await retrieve()));

async function ingest(): Promise<ScaleReport['ingest']> {
  const began = nowMs();
  const { memory, close } = await openCorpusMemory(dir, createCorpus(turns));
  if (!(await memory.maintenance.flush(7_200_000))) throw new Error('the history was not indexed in time');
  const seconds = (nowMs() - began) / 1_000;
  // After a second of rest the index is optimized; closing waits for that.
  await sleep(SILENCE_MS);
  await close();
  return { seconds, turns_per_second: turns / seconds, peak_mb: peakMb() };
}

async function retrieve(): Promise<Omit<ScaleReport, 'ingest'>> {
  const corpus = createCorpus(turns);
  const began = nowMs();
  const { memory, index, close } = await openCorpusMemory(dir, corpus);
  await memory.recall.search('first words', { top: 1, projectDir: PROJECT_DIR });
  const openMs = nowMs() - began;
  await memory.maintenance.flush(600_000);
  const recall = async (nth: number): Promise<readonly string[]> => {
    const request = {
      sessionId: `asking-${nth}`,
      projectDir: PROJECT_DIR,
      prompt: corpus.question(nth).text,
      recent: [],
    };
    const hits = await memory.recall.recall(
      { ...request, visibleTurns: new Set(), shown: new Set() },
      new AbortController().signal,
    );
    return hits.flatMap(({ node }) => node.turns);
  };
  let found = 0;
  const asked = (): Promise<Asked> => {
    found = 0;
    return measured(async (nth) => {
      if ((await recall(nth)).includes(corpus.question(nth).turn)) found += 1;
    });
  };
  // Other questions first: they warm up.
  for (let nth = 0; nth < QUESTIONS; nth += 1) await recall(QUESTIONS + nth);
  const warm = { asked: process.memoryUsage.rss() / MB, peak: peakMb() };
  const { nodes, index: size } = await memory.maintenance.stats();
  const optimized = await asked();
  const foundAt10 = found / QUESTIONS;
  const searched = await measured(async (nth) => {
    const typed = corpus.question(nth).text.slice(0, TYPED_CHARS + nth);
    await memory.recall.search(typed, { top: 20, projectDir: PROJECT_DIR });
  });
  await putFresh(index);
  const fresh = await asked();
  await memory.maintenance.rest();
  gc?.();
  await sleep(SILENCE_MS);
  const rss = { ...warm, resting: process.memoryUsage.rss() / MB };
  await close();
  const disk = diskBytes(dir);
  return {
    turns,
    nodes,
    rows: size.rows,
    open_ms: openMs,
    retrieve_ms: { optimized, fresh },
    search_ms: searched,
    found_at_10: foundAt10,
    disk_mb: disk.bytes / MB,
    files: disk.files,
    rss_mb: rss,
  };
}

async function measured(work: (nth: number) => Promise<void>): Promise<Asked> {
  const times: number[] = [];
  const before = process.cpuUsage();
  for (let nth = 0; nth < QUESTIONS; nth += 1) {
    const start = nowMs();
    await work(nth);
    times.push(nowMs() - start);
  }
  const { user, system } = process.cpuUsage(before);
  return { ...spread(times), cpu: (user + system) / 1_000 / QUESTIONS };
}

/** @throws where a turn is not found as soon as it was put */
async function putFresh(index: SearchIndex): Promise<void> {
  for (let nth = 0; nth < FRESH_COMMITS; nth += 1) {
    const first = turns + nth * TURNS_PER_NODE;
    const node = getNode(first, first + TURNS_PER_NODE);
    const read = [0, 1, 2].map((at) => readTurn(turnAt(first + at)));
    const positions = read.map(
      ({ turnId }, at) => [turnId, { sessionId: node.session_id, position: first + at }] as const,
    );
    await index.put(
      getRows(node, { turns: new Map(read.map((turn) => [turn.turnId, turn])), positions: new Map(positions) }),
    );
    const hits = await index.search(read[0]?.user ?? '', { project: PROJECT_DIR }, 10, ['raw']);
    if (!hits.some(({ turnId }) => turnId === read[0]?.turnId)) throw new Error('a fresh turn was not found');
  }
}
