import { CometError, type Problem } from '../../../common/errors.ts';
import type { Embedder, Embedding } from '../../embeddings/embedder.ts';
import { tokenize } from '../../text/tokenizer.ts';
import type { RowCounts } from '../in-memory-index.ts';
import type { IndexRow } from '../node-index.ts';
import { holdsTime } from '../temporal-query.ts';
import type { ScannedRow, StoredRow } from './lance-rows.ts';
import type { LanceTable } from './lance-table.ts';

/** Beyond this in a commit nothing gets faster, and the embedder holds that many texts. */
const ROWS_PER_COMMIT = 500;
const MAX_WAITING_ROWS = 5_000;
/**
 * Each commit leaves a fragment, and a search of the table takes twice as long with 20 of them. But tidying writes the
 * whole table anew: of a large one it waits for more commits, one for so many rows.
 */
const LEAST_COMMITS = 16;
const MOST_COMMITS = 64;
const ROWS_PER_AWAITED_COMMIT = 256;
/** Right after a tidying it waits for so many times more: the files of the version before are still there. */
const BURST_FACTOR = 4;
/** Once nothing was written for so long, a quarter of those commits are enough, or many rows that came at once. */
const REST_MS = 30_000;
const BULK_REST_MS = 1_000;
const BULK_ROWS = 500;
const COMMITS_PER_REOPEN = 500;
/** Another process that reads the same files may still be on the version before. */
const OLD_VERSION_MS = 10_000;
const TRIES = 5;
/** What full text sees of one row; whole tool outputs of megabytes would only blur it. */
const MAX_TEXT_CHARS = 100_000;

export interface IndexWriter {
  /** @throws CometError `index_failed` when too much is waiting; the files still hold everything */
  upsert(rows: readonly IndexRow[]): Promise<void>;
  removeNodes(nodeIds: readonly string[]): Promise<void>;
  clear(): Promise<void>;
  /** See `NodeIndex.purge`. */
  purge(): Promise<void>;
  /** Puts right what an earlier run left behind; in the background. */
  tidy(): void;
  /** Resolves when nothing is in work, and begins nothing by itself any more; never rejects. */
  close(): Promise<void>;
}

export interface IndexWriterDeps {
  readonly table: LanceTable;
  readonly embedder: Embedder;
  readonly counts: RowCounts;
  readonly now: () => number;
  readonly report: (problem: Omit<Problem, 'file'>) => void;
  /** Told when rows were written without vectors: words find them, and the next start makes up for it. */
  readonly unembedded: (error: unknown) => void;
}

interface Waiting {
  readonly rows: readonly IndexRow[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The one writer: commits one after the other, upserts that wait share a commit. */
export function createIndexWriter(deps: IndexWriterDeps): IndexWriter {
  const { table, now, report, counts } = deps;
  const { book } = counts;
  let tail: Promise<void> = Promise.resolve();
  let waiting: Waiting[] = [];
  let waitingRows = 0;
  let sinceOptimize = 0;
  let rowsSinceOptimize = 0;
  let sinceReopen = 0;
  /** Files of versions that were too young to be removed. */
  let leftOver = false;
  let optimizedAtMs = Number.NEGATIVE_INFINITY;
  let resting: NodeJS.Timeout | undefined;
  let closed = false;

  function alone<T>(work: () => Promise<T>): Promise<T> {
    const result = tail.then(work);
    tail = result.then(
      () => {},
      () => {},
    );
    return result;
  }

  async function writeWaiting(): Promise<void> {
    const batch = waiting;
    waiting = [];
    const rows = [...new Map(batch.flatMap((entry) => entry.rows.map((row) => [row.row_id, row]))).values()];
    try {
      for (let at = 0; at < rows.length; at += ROWS_PER_COMMIT) await commit(rows.slice(at, at + ROWS_PER_COMMIT));
      await maintain();
      for (const { resolve } of batch) resolve();
    } catch (error) {
      for (const { reject } of batch) reject(error);
    } finally {
      waitingRows -= batch.reduce((sum, entry) => sum + entry.rows.length, 0);
    }
  }

  async function commit(rows: readonly IndexRow[]): Promise<void> {
    const stored = await storedRows(rows, deps);
    const fresh = stored.filter(({ row_id }) => book.get(row_id) === undefined);
    const known = stored.filter(({ row_id }) => book.get(row_id) !== undefined);
    if (fresh.length > 0) {
      await retried(() => table.add(fresh));
      count(fresh);
    }
    if (known.length > 0) {
      const before = await scanned(known.map(({ row_id }) => row_id));
      await retried(() => table.replace(known));
      for (const row of before) counts.remove(row);
      count(known);
    }
  }

  async function scanned(rowIds: readonly string[]): Promise<ScannedRow[]> {
    const rows: ScannedRow[] = [];
    for await (const some of table.scan({ rowIds })) rows.push(...some);
    return rows;
  }

  function count(rows: readonly StoredRow[]): void {
    for (const row of rows) counts.put(row);
    rowsSinceOptimize += rows.length;
    sinceOptimize += 1;
    sinceReopen += 1;
  }

  async function removeNodes(nodeIds: readonly string[]): Promise<void> {
    const held = nodeIds.filter((id) => book.rowsOf(id).length > 0);
    if (held.length === 0) return;
    const before = await scanned(held.flatMap((id) => book.rowsOf(id)));
    await retried(() => table.deleteNodes(held));
    for (const row of before) counts.remove(row);
    sinceOptimize += 1;
    sinceReopen += 1;
    await maintain();
  }

  const awaited = (): number =>
    Math.min(MOST_COMMITS, Math.max(LEAST_COMMITS, Math.ceil(book.count() / ROWS_PER_AWAITED_COMMIT)));
  const isDue = (): boolean => sinceOptimize >= awaited() * (now() - optimizedAtMs < OLD_VERSION_MS ? BURST_FACTOR : 1);
  const isBulk = (): boolean => rowsSinceOptimize >= BULK_ROWS;

  /** What fails here costs speed, never rows: it is reported and tried again after the next commit. */
  async function maintain(due = isDue()): Promise<void> {
    try {
      if (due) await optimize();
      if (sinceReopen >= COMMITS_PER_REOPEN) {
        await table.reopen();
        sinceReopen = 0;
      }
    } catch (error) {
      report({ message: `the index could not be tidied: ${(error as Error).message.split('\n')[0]}` });
    }
    rest();
  }

  /** Waits for silence. */
  function rest(): void {
    clearTimeout(resting);
    if (closed || (sinceOptimize === 0 && !leftOver)) return;
    const tidied = async (): Promise<void> => {
      if (closed) return;
      const isWorthIt = isBulk() || sinceOptimize >= awaited() / 4;
      if (isWorthIt || sinceOptimize === 0) await maintain(true);
    };
    resting = setTimeout(() => void alone(tidied), isBulk() ? BULK_REST_MS : REST_MS).unref();
  }

  async function optimize(): Promise<void> {
    leftOver = sinceOptimize > 0;
    await retried(() => table.optimize(new Date(now() - OLD_VERSION_MS)));
    rowsSinceOptimize = 0;
    sinceOptimize = 0;
    optimizedAtMs = now();
    // What memory compares needs no index, and one costs each tidying more than the rest of it.
    await retried(() => table.indexVectors(!counts.vectors.isWhole()));
  }

  return {
    upsert(rows) {
      if (rows.length === 0) return Promise.resolve();
      if (waitingRows > 0 && waitingRows + rows.length > MAX_WAITING_ROWS) {
        return Promise.reject(new CometError('index_failed', 'too many rows wait for the index; it will be rebuilt'));
      }
      waitingRows += rows.length;
      return new Promise((resolve, reject) => {
        waiting.push({ rows, resolve, reject });
        if (waiting.length === 1) void alone(writeWaiting);
      });
    },
    removeNodes: (nodeIds) => alone(() => removeNodes(nodeIds)),
    clear: () =>
      alone(async () => {
        await table.clear();
        counts.clear();
        rowsSinceOptimize = 0;
      }),
    purge: () =>
      alone(async () => {
        await table.rewrite();
        rowsSinceOptimize = 0;
        sinceOptimize = 0;
      }),
    tidy() {
      void alone(async () => {
        const fragments = await table.fragments().catch(() => 0);
        sinceOptimize += Math.max(0, fragments - 1);
        leftOver = fragments <= 1;
        const isNeedless = table.hasVectorIndex() && counts.vectors.isWhole();
        await maintain(isNeedless || sinceOptimize >= awaited() / 4);
      });
    },
    async close() {
      closed = true;
      clearTimeout(resting);
      await tail;
    },
  };
}

async function storedRows(
  rows: readonly IndexRow[],
  { embedder, unembedded }: Pick<IndexWriterDeps, 'embedder' | 'unembedded'>,
): Promise<StoredRow[]> {
  const triggered = rows.filter(({ trigger }) => trigger !== '');
  const texts = [...rows.map(({ summary }) => summary), ...triggered.map(({ trigger }) => trigger)];
  let embeddings: readonly Embedding[];
  try {
    embeddings = await embedder.embed(texts);
  } catch (error) {
    unembedded(error);
    return rows.map(withoutVectors);
  }
  if (embeddings.length !== texts.length || embeddings.some(({ vector }) => vector.length !== embedder.dimensions)) {
    // LanceDB would pad a short vector without a word.
    throw new CometError('index_failed', `the embedder ${embedder.id} must give vectors of ${embedder.dimensions}`);
  }
  const triggers = new Map(triggered.map(({ row_id }, at) => [row_id, embeddings[rows.length + at]?.vector ?? null]));
  return rows.map((row, at) => {
    const { vector, scriptVector, pieces } = embeddings[at] as Embedding;
    return {
      ...withoutVectors(row),
      digest: row.digest,
      embedder_id: embedder.id,
      summary_vector: vector,
      trigger_vector: triggers.get(row.row_id) ?? null,
      script_vector: scriptVector,
      pieces: new Uint8Array(pieces.buffer, pieces.byteOffset, pieces.byteLength),
    };
  });
}

/** Without its digest a node counts as not yet written, so that it is written again. */
function withoutVectors({ summary: _, trigger: __, ...kept }: IndexRow): StoredRow {
  const text = kept.text.slice(0, MAX_TEXT_CHARS);
  const empty = { summary_vector: null, trigger_vector: null, script_vector: null, pieces: new Uint8Array(0) };
  return {
    ...kept,
    ...empty,
    digest: '',
    text,
    timed: kept.kind === 'turn' && holdsTime(text),
    tokens: tokenize(text).join(' '),
    embedder_id: '',
  };
}

async function retried(work: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await work();
      return;
    } catch (error) {
      if (attempt === TRIES || !/conflict/i.test((error as Error).message)) throw error;
    }
  }
}
