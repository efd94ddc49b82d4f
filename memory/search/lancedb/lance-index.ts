import { rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { CometError, type Problem } from '../../../common/errors.ts';
import { ensureDir, readFileIfPresent } from '../../../common/files.ts';
import type { Embedder } from '../../embeddings/embedder.ts';
import { createMeanVector } from '../../embeddings/mean-vector.ts';
import { loadStaticTable, STATIC } from '../../embeddings/static-encoder.ts';
import { createWordRarity } from '../../embeddings/word-rarity.ts';
import { wordVector } from '../../embeddings/word-vectors.ts';
import { SCRIPT_DIMENSIONS } from '../../text/cjk.ts';
import { createRowCounts, type RowCounts } from '../in-memory-index.ts';
import type { Found, FoundRow, Hits, Lane, NodeIndex, SearchOptions } from '../node-index.ts';
import { createThesaurus } from '../query-expansion.ts';
import { searchTerms } from '../search-terms.ts';
import { createVectorBook } from '../vector-index.ts';
import { createIndexWriter } from './index-writer.ts';
import {
  createLanceTable,
  type LanceTable,
  openLanceTable,
  type RowFilter,
  type ScoredRow,
  type VectorColumn,
} from './lance-table.ts';
import { createVectorIndex } from './lance-vectors.ts';
import { createLaneGuards, lanesOf, NO_HITS } from './lane-breakers.ts';
import { joined, kindsAsked, nearestOfKinds, ofKind } from './retrieve-by-kind.ts';

export interface LanceIndexOptions {
  readonly dir: string;
  readonly embedder: Embedder;
  /** Milliseconds since the epoch; only how long old versions stay, and how soon they are made, depends on it. */
  readonly now: () => number;
  /** With so many rows or more the vectors get an index of their own. */
  readonly rowsForVectorIndex?: number;
  /** Told when the index could not be tidied; searches only get slower. */
  readonly report: (problem: Problem) => void;
  /** See `IndexWriterDeps`. */
  readonly unembedded?: (error: unknown) => void;
}

export interface OpenedIndex {
  readonly index: NodeIndex;
  /** The index is empty: whoever opened it must fill it from the files. */
  readonly rebuilt: boolean;
  /** Why, '' when it was not. A directory that could not be read stays beside it as `<dir>.damaged`. */
  readonly reason: string;
}

type Kind = FoundRow['kind'];

const NONE: ReadonlySet<Lane> = new Set();
/** Hits of the lanes of nodes. */
export const NODE_LIMIT = 60;
/** Present when a read or write failed: the next start begins anew. */
const DOUBT = 'REBUILD';

/** Opens or makes the index. What cannot be read is set aside, never repaired. @throws CometError `index_failed` */
export async function openLanceIndex(options: LanceIndexOptions): Promise<OpenedIndex> {
  try {
    await ensureDir(options.dir);
    const opened = await openSound(options);
    if (typeof opened !== 'string')
      return { index: indexOn(options, opened.table, opened.counts), rebuilt: false, reason: '' };
    const table = await createLanceTable(placeOf(options));
    return { index: indexOn(options, table, noCounts(options)), rebuilt: true, reason: opened };
  } catch (error) {
    throw failed('the index cannot be opened; check space and permissions', error);
  }
}

function placeOf({ dir, embedder, rowsForVectorIndex }: LanceIndexOptions): Parameters<typeof createLanceTable>[0] {
  return { dir, dimensions: embedder.dimensions, vectors: createVectorIndex(rowsForVectorIndex) };
}

interface Sound {
  readonly table: LanceTable;
  readonly counts: RowCounts;
}

function noCounts({ embedder, rowsForVectorIndex }: LanceIndexOptions, rows = 0): RowCounts {
  const { dimensions } = STATIC;
  const vectorOf = (word: string): Float32Array => wordVector(loadStaticTable(), word);
  const most = rowsForVectorIndex === undefined ? undefined : rowsForVectorIndex - 1;
  const held = createVectorBook(embedder.dimensions, rows, most);
  return createRowCounts(createThesaurus(dimensions, vectorOf), held);
}

/** @returns the table and what is in it, or why a new one is needed */
async function openSound(options: LanceIndexOptions): Promise<Sound | string> {
  const { dir, embedder } = options;
  try {
    if ((await readFileIfPresent(path.join(dir, DOUBT))) !== null) throw new Error('an earlier run could not use it');
    const table = await openLanceTable(placeOf(options));
    if (table === null) return 'new';
    // Of another build of ours: sound, and of no use.
    if (table === 'other columns') return 'it has the columns of another comet-cc';
    const counts = noCounts(options, await table.count());
    for await (const rows of table.scan({ vectors: counts.vectors.isWhole() })) {
      const foreign = rows.find(({ embedder_id }) => embedder_id !== embedder.id && embedder_id !== '');
      if (foreign !== undefined) {
        table.close();
        return `made by the embedder ${foreign.embedder_id}`;
      }
      for (const row of rows) counts.put(row);
      // Thousands of turns are counted here; whoever shares the thread must not wait for all of them.
      await setImmediate();
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

/** Touches every index and vector column, which a scan leaves alone. */
async function probe(table: LanceTable, dimensions: number): Promise<void> {
  const vector = new Float32Array(dimensions).fill(1 / Math.sqrt(dimensions));
  const filter = { kinds: ['node', 'turn', 'fact'], project: '' } as const;
  await Promise.all([
    table.turnWords(['probe']),
    table.nearest('summary_vector', vector, filter, 1),
    table.nearest('trigger_vector', vector, {}, 1),
    table.nearest('script_vector', new Float32Array(SCRIPT_DIMENSIONS).fill(1), {}, 1),
  ]);
}

function indexOn(
  { dir, embedder, now, report, unembedded = () => {} }: LanceIndexOptions,
  table: LanceTable,
  counts: RowCounts,
): NodeIndex {
  const { book, words, stats, pieces, thesaurus, vectors } = counts;
  const guards = createLaneGuards(now);
  const mean = createMeanVector((most) => table.sample(most));
  let closed = false;
  const writer = createIndexWriter({
    table,
    embedder,
    now,
    counts,
    report: ({ message }) => {
      void doubt();
      report({ file: dir, message: `${message}; it is rebuilt at the next start` });
    },
    unembedded,
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

  /** Told once: while a lane is broken every search misses it. */
  let told = false;
  function missed(failure: unknown): void {
    void doubt();
    if (told) return;
    told = true;
    const [line] = (failure as Error).message.split('\n');
    report({
      file: dir,
      message: `recall answers without a part of the index, which is rebuilt at the next start: ${line}`,
    });
  }

  /** The book knows neither rows that were removed since nor, for a moment, those that were written. */
  function booked(rows: readonly ScoredRow[], fits: (slot: number) => boolean): Hits {
    const hits: { slots: number[]; scores: number[] } = { slots: [], scores: [] };
    for (const { rowId, score } of rows) {
      const slot = book.slotOf(rowId);
      if (slot === undefined || !fits(slot)) continue;
      hits.slots.push(slot);
      hits.scores.push(score);
    }
    return hits;
  }

  async function search(query: string, { filter, limit, without = NONE }: SearchOptions): Promise<Found> {
    const weigh = (tokens: readonly string[]): ReadonlyMap<string, number> => stats.weights(tokens, filter);
    const known = (tokens: readonly string[]): ReadonlyMap<string, number> => stats.knownWeights(tokens, filter);
    const terms = searchTerms(query, { weigh, known, thesaurus, without });
    const asked = await embedder.embedQuery(query, {
      pieceWeights: (ids) => pieces.idf(ids, filter),
      mean: () => mean(book.count()),
    });
    const inScript = asked.comparedWith === 'scriptVector';
    if (asked.vector.length !== (inScript ? SCRIPT_DIMENSIONS : embedder.dimensions)) {
      throw failed(`the embedder ${embedder.id} must give vectors of ${embedder.dimensions}`);
    }
    const few = Math.min(limit, NODE_LIMIT);
    const count = stats.rowsIn(filter);
    const scope = count === stats.rowsIn({}) ? { among: count } : { ...filter, among: count };
    const column = inScript ? 'script_vector' : 'summary_vector';
    const asking = { limit, fits: book.fitting(filter) };
    const nearest = async (of: VectorColumn, kinds: RowFilter['kinds'], most: number): Promise<Hits> =>
      booked(await table.nearest(of, asked.vector, { ...scope, ...(kinds && { kinds }) }, most), asking.fits);
    const most = { turn: limit, node: few, fact: limit };
    const among = { held: book.holds, without };
    const nearOf = nearestOfKinds(most, { ...among, kindAt: book.kindAt });
    const kinds = kindsAsked(among);
    const compare = (): Hits => {
      const groups = { turn: kinds.indexOf('turn'), node: kinds.indexOf('node'), fact: kinds.indexOf('fact') };
      const groupOf = (slot: number): number => {
        const kind = book.kindAt(slot);
        return kind === undefined || !asking.fits(slot) ? -1 : groups[kind];
      };
      return joined(
        vectors.nearest(
          asked.vector,
          groupOf,
          kinds.map((kind) => most[kind]),
        ),
      );
    };
    const isHeld = !inScript && vectors.isWhole();
    const lanes = lanesOf(guards, without);
    const [raw, likes, expanded, window, entity, fts, fact, trigger] = await Promise.all([
      lanes.ask(['raw'], () => words.search('turn', terms.own, asking)),
      lanes.ask(['meaning', 'summary', 'factMeaning'], () =>
        isHeld ? compare() : nearOf((...args) => nearest(column, ...args)),
      ),
      lanes.ask(['expanded'], () => words.search('turn', terms.expanded, asking)),
      lanes.ask(['window'], () => words.searchWindows(terms.own, asking)),
      lanes.ask(['entity'], () => words.search('turn', terms.entities, asking)),
      lanes.ask(['fts'], () => words.search('node', terms.own, { ...asking, limit: few })),
      lanes.ask(['fact'], () => words.search('fact', terms.own, asking)),
      lanes.ask(['trigger'], () => (inScript ? NO_HITS : nearest('trigger_vector', ['node'], few))),
    ]);
    const failure = lanes.settle();
    if (failure !== null) missed(failure);
    const likesOf = (kind: Kind): Hits => ofKind(likes, (slot) => book.kindAt(slot) === kind, most[kind]);
    const near = { meaning: likesOf('turn'), summary: likesOf('node'), factMeaning: likesOf('fact') };
    return { lanes: { raw, expanded, window, entity, fts, fact, trigger, ...near }, rows: book };
  }

  return {
    embedderId: () => embedder.id,
    upsert: (rows) => guarded('written', () => writer.upsert(rows)),
    removeNodes: (nodeIds) => guarded('written', () => writer.removeNodes(nodeIds)),
    search: (query, options) => guarded('read', () => search(query, options)),
    turnWords: (turnIds) => guarded('read', () => table.turnWords(turnIds)),
    termWeights: (tokens, filter) => stats.weights(tokens, filter),
    lexicon: createWordRarity(loadStaticTable),
    nodeIds: async () => book.nodeIds(),
    entries: async () => book.entries(),
    purge: () =>
      guarded('rewritten', async () => {
        await rm(`${dir}.damaged`, { recursive: true, force: true });
        await writer.purge();
      }),
    count: async () => book.count(),
    clear: () =>
      guarded('cleared', async () => {
        await writer.clear();
        await rm(path.join(dir, DOUBT), { force: true });
      }),
    async close() {
      if (closed) return;
      closed = true;
      await writer.close();
      table.close();
    },
  };
}

function failed(message: string, cause?: unknown): CometError {
  return new CometError('index_failed', message, { cause });
}
