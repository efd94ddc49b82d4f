import { rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { CometError } from '../../common/errors.ts';
import { ensureDir, readFileIfPresent } from '../../common/files.ts';
import { createMeanVector } from '../core/mean-vector.ts';
import { createPieceStats } from '../core/piece-stats.ts';
import { queryTerms } from '../core/query-terms.ts';
import { SCRIPT_DIMENSIONS } from '../core/script.ts';
import { createTermStats } from '../core/term-stats.ts';
import type { Embedder, LaneHits, NodeIndex, Problem } from '../ports.ts';
import { type Counts, countRow, createIndexWriter } from './index-writer.ts';
import { createLanceTable, type LanceTable, openLanceTable } from './lance-table.ts';

export interface LanceIndexOptions {
  readonly dir: string;
  readonly embedder: Embedder;
  /** Milliseconds since the epoch; only how long old versions stay depends on it. */
  readonly now: () => number;
  /** Told when the index could not be tidied; searches only get slower. */
  readonly report: (problem: Problem) => void;
}

export interface OpenedIndex {
  readonly index: NodeIndex;
  /** The index is empty: whoever opened it must fill it from the files. */
  readonly rebuilt: boolean;
  /** Why, '' when it was not. A directory that could not be read stays beside it as `<dir>.damaged`. */
  readonly reason: string;
}

/** Present when a read or write failed: the next start begins anew. */
const DOUBT = 'REBUILD';

/** Opens or makes the index. What cannot be read is set aside, never repaired. @throws CometError `index_failed` */
export async function openLanceIndex(options: LanceIndexOptions): Promise<OpenedIndex> {
  try {
    await ensureDir(options.dir);
    const opened = await openSound(options);
    if (typeof opened !== 'string')
      return { index: indexOn(options, opened.table, opened.counts), rebuilt: false, reason: '' };
    const table = await createLanceTable(options.dir, options.embedder.dimensions);
    return { index: indexOn(options, table, noCounts()), rebuilt: true, reason: opened };
  } catch (error) {
    throw failed('the index cannot be opened; check space and permissions', error);
  }
}

interface Sound {
  readonly table: LanceTable;
  readonly counts: Counts;
}

function noCounts(): Counts {
  return { stats: createTermStats(), pieces: createPieceStats() };
}

/** @returns the table and what is in it, or why a new one is needed */
async function openSound({ dir, embedder }: LanceIndexOptions): Promise<Sound | string> {
  try {
    if ((await readFileIfPresent(path.join(dir, DOUBT))) !== null) throw new Error('an earlier run could not use it');
    const table = await openLanceTable(dir, embedder.dimensions);
    if (table === null) return 'new';
    const counts = noCounts();
    for (const [at, row] of (await table.scan()).entries()) {
      // Thousands of turns are counted here; whoever shares the thread must not wait for all of them.
      if (at % 200 === 199) await setImmediate();
      if (row.embedder_id !== embedder.id) {
        table.close();
        return `made by the embedder ${row.embedder_id}`;
      }
      countRow(row, counts);
    }
    await probe(table, embedder.dimensions);
    return { table, counts };
  } catch (error) {
    await rm(`${dir}.damaged`, { recursive: true, force: true });
    await rename(dir, `${dir}.damaged`);
    await ensureDir(dir);
    return `could not be read: ${(error as Error).message.split('\n')[0]}`;
  }
}

/** Touches the full-text index and both vector columns, which a scan leaves alone. */
async function probe(table: LanceTable, dimensions: number): Promise<void> {
  const vector = new Float32Array(dimensions).fill(1 / Math.sqrt(dimensions));
  await Promise.all([
    table.fullText(['probe'], {}, 1),
    table.nearest('summary_vector', vector, {}, 1),
    table.nearest('trigger_vector', vector, {}, 1),
    table.nearest('script_vector', new Float32Array(SCRIPT_DIMENSIONS).fill(1), {}, 1),
  ]);
}

function indexOn({ dir, embedder, now, report }: LanceIndexOptions, table: LanceTable, counts: Counts): NodeIndex {
  const { stats, pieces } = counts;
  const mean = createMeanVector((most) => table.sample(most));
  let closed = false;
  const writer = createIndexWriter({
    table,
    embedder,
    now,
    ...counts,
    report: ({ message }) => {
      void doubt();
      report({ file: dir, message: `${message}; it is rebuilt at the next start` });
    },
  });
  writer.tidy();

  // Best effort: where not even this can be written, the next failure will try again.
  const doubt = (): Promise<void> => writeFile(path.join(dir, DOUBT), '', { mode: 0o600 }).catch(() => undefined);

  async function guarded<T>(what: string, work: () => Promise<T>): Promise<T> {
    if (closed) throw failed('the index is closed');
    try {
      return await work();
    } catch (error) {
      if (error instanceof CometError) throw error;
      await doubt();
      throw failed(`the index cannot be ${what}; it is rebuilt at the next start`, error);
    }
  }

  async function search(query: string, { filter, limit }: Parameters<NodeIndex['search']>[1]): Promise<LaneHits> {
    const terms = queryTerms(query, (tokens) => stats.weights(tokens, filter));
    const asked = await embedder.embedQuery(query, {
      pieceWeights: (ids) => pieces.idf(ids, filter),
      mean: () => mean(stats.count()),
    });
    const inScript = asked.comparedWith === 'scriptVector';
    if (asked.vector.length !== (inScript ? SCRIPT_DIMENSIONS : embedder.dimensions)) {
      throw failed(`the embedder ${embedder.id} must give vectors of ${embedder.dimensions}`);
    }
    const [fts, raw, summary, trigger] = await Promise.all([
      table.fullText(terms, { ...filter, kind: 'node' }, limit),
      table.fullText(terms, { ...filter, kind: 'turn' }, limit),
      table.nearest(inScript ? 'script_vector' : 'summary_vector', asked.vector, filter, limit),
      inScript ? [] : table.nearest('trigger_vector', asked.vector, { ...filter, kind: 'node' }, limit),
    ]);
    return { fts, raw, summary, trigger };
  }

  return {
    upsert: (rows) => guarded('written', () => writer.upsert(rows)),
    removeNodes: (nodeIds) => guarded('written', () => writer.removeNodes(nodeIds)),
    search: (query, options) => guarded('read', () => search(query, options)),
    termWeights: (tokens, filter) => stats.weights(tokens, filter),
    nodeIds: async () => stats.nodeIds(),
    entries: async () => stats.entries(),
    purge: () =>
      guarded('rewritten', async () => {
        await rm(`${dir}.damaged`, { recursive: true, force: true });
        await writer.purge();
      }),
    count: async () => stats.count(),
    clear: () =>
      guarded('cleared', async () => {
        await writer.clear();
        await rm(path.join(dir, DOUBT), { force: true });
      }),
    async close() {
      if (closed) return;
      closed = true;
      await writer.settled();
      table.close();
    },
  };
}

function failed(message: string, cause?: unknown): CometError {
  return new CometError('index_failed', message, { cause });
}
