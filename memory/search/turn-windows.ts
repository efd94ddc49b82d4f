import { grown } from './grow-array.ts';
import { createPostings, type Reading } from './postings.ts';

/** Which turns lie before which, by the slots of their rows, and how long their windows are. Held in memory. */
export interface TurnOrder {
  /**
   * @param turn   its number; those before it likewise
   * @param words  that it counts in windows with
   */
  put(slot: number, turn: number, before: readonly number[], words: number): void;
  remove(slot: number): void;
  /**
   * Rows whose window holds this one's words, its own left out; some may be removed. Where several rows hold a turn,
   * only the first of them leads to others, so that no word counts twice.
   */
  after(slot: number): Reading;
  /** Words of a row's window. */
  wordsIn(slot: number): number;
  /** Of all windows together. */
  totalWords(): number;
  /** Forgets removed rows for good. */
  tidy(): void;
  clear(): void;
}

const NOTHING: Reading = { values: new Uint32Array(0), count: 0 };

export function createTurnOrder(): TurnOrder {
  /** Rows that name a turn among those before them. */
  const naming = createPostings();
  /** By row its turn, by turn its first row, by row the next of its turn: numbers plus one; 0 is none. */
  let turnOf = new Uint32Array(1_024);
  let firstOf = new Uint32Array(1_024);
  let nextOf = new Uint32Array(1_024);
  let heads = new Uint32Array(1_024);
  let windows = new Uint32Array(1_024);
  let total = 0;

  const headOf = (turn: number): number => {
    const row = firstOf[turn] ?? 0;
    return row === 0 ? 0 : (heads[row - 1] as number);
  };

  /** What the first row of a turn has in words, all windows after it have. */
  function lend(turn: number, words: number): void {
    if (words === 0) return;
    const { values, count } = naming.read(turn);
    for (let at = 0; at < count; at += 1) {
      const slot = values[at] as number;
      if (turnOf[slot] === 0) continue;
      windows[slot] = (windows[slot] as number) + words;
      total += words;
    }
  }

  function append(turn: number, slot: number): void {
    let last = firstOf[turn] as number;
    if (last === 0) firstOf[turn] = slot + 1;
    while (last !== 0) {
      const next = nextOf[last - 1] as number;
      if (next === 0) nextOf[last - 1] = slot + 1;
      last = next;
    }
  }

  function unlink(turn: number, slot: number): void {
    const next = nextOf[slot] as number;
    nextOf[slot] = 0;
    if (firstOf[turn] === slot + 1) firstOf[turn] = next;
    for (let each = firstOf[turn] as number; each !== 0; each = nextOf[each - 1] as number) {
      if (nextOf[each - 1] === slot + 1) nextOf[each - 1] = next;
    }
  }

  return {
    put(slot, turn, before, words) {
      turnOf = grown(turnOf, slot);
      nextOf = grown(nextOf, slot);
      heads = grown(heads, slot);
      windows = grown(windows, slot);
      firstOf = grown(firstOf, turn);
      const had = headOf(turn);
      let sum = words;
      for (const earlier of before) {
        naming.add(earlier, slot);
        sum += headOf(earlier);
      }
      turnOf[slot] = turn + 1;
      heads[slot] = words;
      windows[slot] = sum;
      total += sum;
      append(turn, slot);
      lend(turn, headOf(turn) - had);
    },
    remove(slot) {
      const own = (turnOf[slot] ?? 0) - 1;
      if (own < 0) return;
      const had = headOf(own);
      turnOf[slot] = 0;
      total -= windows[slot] as number;
      unlink(own, slot);
      lend(own, headOf(own) - had);
    },
    after(slot) {
      const own = (turnOf[slot] as number) - 1;
      return firstOf[own] === slot + 1 ? naming.read(own) : NOTHING;
    },
    wordsIn: (slot) => windows[slot] as number,
    totalWords: () => total,
    tidy: () => naming.retain((slot) => turnOf[slot] !== 0),
    clear() {
      naming.clear();
      for (const held of [turnOf, firstOf, nextOf]) held.fill(0);
      total = 0;
    },
  };
}
