import { setTimeout as sleep } from 'node:timers/promises';
import { nowMs, type Spread, spread } from '../latency/stats.ts';
import { createCorpus, PROJECT_DIR } from './corpus.ts';
import { type Nearness, openPlain, preparePlain } from './plain.ts';
import { diskBytes, openCorpusMemory, peakMb } from './stage.ts';

export interface ScaleReport {
  readonly turns: number;
  readonly nodes: number;
  readonly rows: number;
  /** The most that was resident, the tidying in the silence after it included. */
  readonly ingest: { readonly seconds: number; readonly turns_per_second: number; readonly peak_mb: number };
  /** From the files and the index of an earlier run to the first answer. */
  readonly open_ms: number;
  readonly retrieve_ms: Spread;
  /** One vector search and one full-text search of plain LanceDB over the same rows, at the same time. */
  readonly plain_ms: Spread;
  /** Questions whose turn's node is among the first ten. */
  readonly found_at_10: number;
  /** Of the ten nearest vectors of a flat search over the table. */
  readonly near_at_10: Nearness;
  readonly disk_mb: number;
  readonly files: number;
  /** Of memory alone, without the plain connection beside it. */
  readonly rss_mb: { readonly resting: number; readonly peak: number };
}

const QUESTIONS = 200;
const SILENCE_MS = 2_000;
const MB = 1024 * 1024;

/** Run as a process of its own, so that nothing of another size is in its memory: prints a `ScaleReport`. */
const [phase, turns, dir] = [process.argv[2], Number(process.argv[3]), process.argv[4] ?? ''];
if (phase === 'ingest') console.log(JSON.stringify(await ingest()));
else if (phase === 'plain') console.log(JSON.stringify(await preparePlain(dir).then(() => null)));
else console.log(JSON.stringify(await retrieve()));

async function ingest(): Promise<ScaleReport['ingest']> {
  const began = nowMs();
  const { memory, close } = await openCorpusMemory(dir, createCorpus(turns));
  if (!(await memory.maintenance.flush(7_200_000))) throw new Error('the history was not indexed in time');
  const seconds = (nowMs() - began) / 1_000;
  // After a second of silence the index is tidied; closing waits for that.
  await sleep(SILENCE_MS);
  await close();
  return { seconds, turns_per_second: turns / seconds, peak_mb: peakMb() };
}

async function retrieve(): Promise<Omit<ScaleReport, 'ingest'>> {
  const corpus = createCorpus(turns);
  const began = nowMs();
  const { memory, close } = await openCorpusMemory(dir, corpus);
  await memory.recall.search('first words', { top: 1 });
  const openMs = nowMs() - began;
  await memory.maintenance.flush(600_000);
  const questions = Array.from({ length: QUESTIONS }, (_, nth) => corpus.question(nth));
  const recall = async (prompt: string, nth: number): Promise<readonly string[]> => {
    const request = { sessionId: `asking-${nth}`, projectDir: PROJECT_DIR, prompt, recent: [] };
    const hits = await memory.recall.recall(
      { ...request, visibleTurns: new Set(), shown: new Set() },
      new AbortController().signal,
    );
    return hits.flatMap(({ node }) => node.turns);
  };
  // Other questions first: they warm up, and what they take is memory's alone, nothing else being open yet.
  for (let nth = 0; nth < QUESTIONS; nth += 1) await recall(corpus.question(QUESTIONS + nth).text, nth);
  const rss = { resting: process.memoryUsage.rss() / MB, peak: peakMb() };
  const plain = await openPlain(
    dir,
    questions.map(({ text }) => text),
  );
  for (let nth = 0; nth < 10; nth += 1) await plain.both(nth);
  const [ours, theirs]: [number[], number[]] = [[], []];
  let found = 0;
  for (const [nth, { text, turn }] of questions.entries()) {
    const start = nowMs();
    const turnsFound = await recall(text, nth);
    ours.push(nowMs() - start);
    if (turnsFound.includes(turn)) found += 1;
    const between = nowMs();
    await plain.both(nth);
    theirs.push(nowMs() - between);
  }
  const { nodes, index } = await memory.maintenance.stats();
  const nearAt10 = await plain.recallAt10(QUESTIONS / 2);
  plain.close();
  await close();
  const disk = diskBytes(dir);
  return {
    turns,
    nodes,
    rows: index.rows,
    open_ms: openMs,
    retrieve_ms: spread(ours),
    plain_ms: spread(theirs),
    found_at_10: found / QUESTIONS,
    near_at_10: nearAt10,
    disk_mb: disk.bytes / MB,
    files: disk.files,
    rss_mb: rss,
  };
}
