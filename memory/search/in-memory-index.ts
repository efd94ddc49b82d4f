import { createPieceStats, type PieceStats } from '../embeddings/subword-stats.ts';
import { createTermStats, type TermStats } from './document-frequency.ts';
import { grown } from './grow-array.ts';
import { createWordIndex, type WordIndex } from './inverted-index.ts';
import type { Thesaurus } from './query-expansion.ts';
import { type BookedRow, createRowBook, type RowBook } from './row-table.ts';
import { createTextIds } from './string-interner.ts';
import { createVectorBook, type VectorBook } from './vector-index.ts';

/** A row with what is counted of it. */
export interface CountedRow extends BookedRow {
  /** Parted by spaces. */
  readonly tokens: string;
  /** `Embedding.pieces` as bytes. */
  readonly pieces: Uint8Array;
  /** Not read where it is not needed. */
  readonly summary_vector?: Float32Array | null;
}

/** All that is kept in memory of an index's rows. */
export interface RowCounts {
  readonly book: RowBook;
  readonly words: WordIndex;
  readonly stats: TermStats;
  readonly pieces: PieceStats;
  readonly thesaurus: Thesaurus;
  readonly vectors: VectorBook;
  /** A row of a known id must be removed first. */
  put(row: CountedRow): void;
  /** The row must be as it was put. */
  remove(row: CountedRow): void;
  clear(): void;
}

export function createRowCounts(thesaurus: Thesaurus, vectors = createVectorBook(1)): RowCounts {
  const book = createRowBook();
  const ids = createTextIds();
  const words = createWordIndex(ids);
  const pieces = createPieceStats();
  const stats = createTermStats(ids, (term, filter) => words.rowsWith(term, book.fitting(filter)));
  /** By term. */
  let said = new Uint32Array(1_024);

  /** Most words were said before, and a look here is sooner done than another at the word. */
  function isFirstSaid(term: number): boolean {
    said = grown(said, term);
    const isFirst = said[term] === 0;
    said[term] = 1;
    return isFirst;
  }

  return {
    book,
    words,
    stats,
    pieces,
    thesaurus,
    vectors,
    put(row) {
      const tokens = tokensOf(row);
      const terms = tokens.map(ids.of);
      const slot = book.put(row);
      const before = row.before.map((_, at) => book.beforeOf(slot, at + 1));
      words.put(slot, { kind: row.kind, turn: book.turnOf(slot), before }, terms);
      vectors.put(slot, row.summary_vector ?? null);
      stats.add(row, terms);
      if (row.kind !== 'turn') return;
      // A node repeats the words of its turns.
      pieces.add(row.project, piecesOf(row));
      thesaurus.add(tokens.filter((_, at) => isFirstSaid(terms[at] as number)));
    },
    remove(row) {
      const slot = book.slotOf(row.row_id);
      if (slot === undefined) return;
      book.remove(row.row_id);
      words.remove(slot);
      vectors.remove(slot);
      stats.remove(row, tokensOf(row).map(ids.of));
      if (row.kind === 'turn') pieces.remove(row.project, piecesOf(row));
    },
    clear() {
      said.fill(0);
      for (const held of [book, words, stats, pieces, ids, vectors]) held.clear();
    },
  };
}

function tokensOf({ tokens }: CountedRow): string[] {
  return tokens === '' ? [] : tokens.split(' ');
}

function piecesOf({ pieces }: CountedRow): Uint16Array {
  return new Uint16Array(pieces.slice().buffer);
}
