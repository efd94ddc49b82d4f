import { grown } from './grow-array.ts';
import type { FoundRow, Hits } from './node-index.ts';
import { createPostings, type Postings } from './postings.ts';
import type { WeightedTerm } from './query-expansion.ts';
import type { TextIds } from './string-interner.ts';
import { bestOf } from './top-k.ts';
import { createTurnOrder } from './turn-windows.ts';

/** A row with its turn and those before it by their numbers. */
export interface WordedRow {
  readonly kind: FoundRow['kind'];
  readonly turn: number;
  readonly before: readonly number[];
}

/** Which rows may be given, and how many. */
export interface WordSearch {
  readonly limit: number;
  readonly fits: (slot: number) => boolean;
}

/**
 * Full text over rows by their slots, exact and as of this moment: BM25 (k1 1.2, b .75), with word statistics of all
 * rows of a kind. Held in memory: about four bytes for each distinct word of a row.
 */
export interface WordIndex {
  /** @param terms  the numbers of its words, in their order */
  put(slot: number, row: WordedRow, terms: readonly number[]): void;
  remove(slot: number): void;
  search(kind: FoundRow['kind'], terms: readonly WeightedTerm[], search: WordSearch): Hits;
  /** Over each turn together with the five before it, of each its first words. */
  searchWindows(terms: readonly WeightedTerm[], search: WordSearch): Hits;
  /** In how many turns and nodes that fit a term stands. */
  rowsWith(term: number, fits: (slot: number) => boolean): number;
  clear(): void;
}

/** What a turn counts with in windows: one long turn must not drown the others. */
export const HEAD_TOKENS = 300;
const K1 = 1.2;
const B = 0.75;
/** A posting: the slot, how often the word stands in the row, how often in its head. */
const SLOT_SHIFT = 8;
const COUNT_SHIFT = 4;
const MOST_COUNTED = 15;
/** Removed rows stay in the lists until there are so many, and more than rows that live. */
const MANY_REMOVED = 5_000;

interface Field {
  readonly postings: Postings;
  rows: number;
  words: number;
}

type Kind = FoundRow['kind'];
const KINDS: readonly Kind[] = ['turn', 'node', 'fact'];

export function createWordIndex(ids: Pick<TextIds, 'find'>): WordIndex {
  const newField = (): Field => ({ postings: createPostings(), rows: 0, words: 0 });
  const fields: Readonly<Record<Kind, Field>> = { turn: newField(), node: newField(), fact: newField() };
  const order = createTurnOrder();
  /** By term, all zero between rows: both counts in one number, the head's above. */
  let counted = new Uint32Array(1_024);
  /** By slot: the kind's place plus one, 0 where no row lives; and its words. */
  let kinds = new Uint32Array(1_024);
  let lengths = new Uint32Array(1_024);
  let removed = 0;
  /** All zero between searches. */
  let scores = new Float64Array(0);
  let heads = new Uint32Array(0);
  let [touched, inWindow] = [new Uint32Array(0), new Uint32Array(0)];
  let found = { slots: touched, scores };

  function tidy(): void {
    for (const kind of KINDS) fields[kind].postings.retain((posting) => kinds[posting >>> SLOT_SHIFT] !== 0);
    order.tidy();
    removed = 0;
  }

  function makeRoom(): void {
    if (scores.length === kinds.length) return;
    scores = new Float64Array(kinds.length);
    heads = new Uint32Array(kinds.length);
    touched = new Uint32Array(kinds.length);
    inWindow = new Uint32Array(kinds.length);
    // What is touched is read in the same order as this is written.
    found = { slots: touched, scores: new Float64Array(kinds.length) };
  }

  /** Gives the best of what was touched, and sets its scores to zero. */
  function taken(count: number, { limit, fits }: WordSearch): Hits {
    let fitting = 0;
    for (let at = 0; at < count; at += 1) {
      const slot = touched[at] as number;
      if (fits(slot)) {
        found.slots[fitting] = slot;
        found.scores[fitting++] = scores[slot] as number;
      }
      scores[slot] = 0;
    }
    return bestOf(found, fitting, limit);
  }

  function known(terms: readonly WeightedTerm[]): (readonly [id: number, weight: number])[] {
    return terms.flatMap(([term, weight]) => {
      const id = ids.find(term);
      return id === undefined ? [] : [[id, weight] as const];
    });
  }

  return {
    put(slot, { kind, turn, before }, terms) {
      kinds = grown(kinds, slot);
      lengths = grown(lengths, slot);
      const field = fields[kind];
      kinds[slot] = KINDS.indexOf(kind) + 1;
      lengths[slot] = terms.length;
      field.rows += 1;
      field.words += terms.length;
      const distinct: number[] = [];
      for (const [at, term] of terms.entries()) {
        counted = grown(counted, term);
        const before = counted[term] as number;
        if (before === 0) distinct.push(term);
        counted[term] = before + (at < HEAD_TOKENS ? 0x1_0001 : 1);
      }
      for (const term of distinct) {
        const both = counted[term] as number;
        counted[term] = 0;
        const count = Math.min(both & 0xffff, MOST_COUNTED);
        const inHead = Math.min(both >>> 16, MOST_COUNTED);
        field.postings.add(term, slot * (1 << SLOT_SHIFT) + (count << COUNT_SHIFT) + inHead);
      }
      if (kind === 'turn') order.put(slot, turn, before, Math.min(terms.length, HEAD_TOKENS));
    },
    remove(slot) {
      const kind = KINDS[(kinds[slot] ?? 0) - 1];
      if (kind === undefined) return;
      fields[kind].rows -= 1;
      fields[kind].words -= lengths[slot] as number;
      kinds[slot] = 0;
      order.remove(slot);
      removed += 1;
      if (removed > MANY_REMOVED && removed > KINDS.reduce((sum, each) => sum + fields[each].rows, 0)) tidy();
    },
    search(kind, terms, asked) {
      makeRoom();
      const { postings, rows, words } = fields[kind];
      let met = 0;
      for (const [id, weight] of known(terms)) {
        const { values, count } = postings.read(id);
        const worth = weight * idf(rows, liveIn(values, count, kinds)) * (K1 + 1);
        for (let at = 0; at < count; at += 1) {
          const posting = values[at] as number;
          const slot = posting >>> SLOT_SHIFT;
          if (kinds[slot] === 0) continue;
          const often = (posting >>> COUNT_SHIFT) & MOST_COUNTED;
          if (scores[slot] === 0) touched[met++] = slot;
          const norm = K1 * (1 - B + (B * rows * (lengths[slot] as number)) / words);
          scores[slot] = (scores[slot] as number) + (worth * often) / (often + norm);
        }
      }
      return taken(met, asked);
    },
    searchWindows(terms, asked) {
      makeRoom();
      const { postings, rows } = fields.turn;
      const words = order.totalWords();
      let met = 0;
      for (const [id, weight] of known(terms)) {
        const { values, count } = postings.read(id);
        let windows = 0;
        const meet = (slot: number, often: number): void => {
          if (kinds[slot] === 0) return;
          if (heads[slot] === 0) inWindow[windows++] = slot;
          heads[slot] = (heads[slot] as number) + often;
        };
        for (let at = 0; at < count; at += 1) {
          const posting = values[at] as number;
          const often = posting & MOST_COUNTED;
          const slot = posting >>> SLOT_SHIFT;
          if (often === 0 || kinds[slot] === 0) continue;
          meet(slot, often);
          const later = order.after(slot);
          for (let nth = 0; nth < later.count; nth += 1) meet(later.values[nth] as number, often);
        }
        const worth = weight * idf(rows, windows) * (K1 + 1);
        for (let at = 0; at < windows; at += 1) {
          const slot = inWindow[at] as number;
          const often = heads[slot] as number;
          heads[slot] = 0;
          if (scores[slot] === 0) touched[met++] = slot;
          const norm = K1 * (1 - B + (B * rows * order.wordsIn(slot)) / words);
          scores[slot] = (scores[slot] as number) + (worth * often) / (often + norm);
        }
      }
      return taken(met, asked);
    },
    rowsWith(term, fits) {
      let count = 0;
      for (const kind of ['turn', 'node'] as const) {
        const list = fields[kind].postings.read(term);
        for (let at = 0; at < list.count; at += 1) {
          const slot = (list.values[at] as number) >>> SLOT_SHIFT;
          if (kinds[slot] !== 0 && fits(slot)) count += 1;
        }
      }
      return count;
    },
    clear() {
      for (const kind of KINDS) {
        fields[kind].postings.clear();
        fields[kind].rows = 0;
        fields[kind].words = 0;
      }
      order.clear();
      kinds.fill(0);
      removed = 0;
    },
  };
}

function idf(rows: number, standing: number): number {
  return Math.log(1 + (rows - standing + 0.5) / (standing + 0.5));
}

function liveIn(values: Uint32Array, count: number, kinds: Uint32Array): number {
  let live = 0;
  for (let at = 0; at < count; at += 1) if (kinds[(values[at] as number) >>> SLOT_SHIFT] !== 0) live += 1;
  return live;
}
