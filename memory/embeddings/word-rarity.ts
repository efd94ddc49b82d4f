import { type StaticTable, wordVector } from './word-vectors.ts';
import { wordPieces } from './wordpiece.ts';

/** Properties of English words, independent of the corpus. */
export interface WordRarity {
  /** 0 for a common word, 1 for a rare or unknown one; `token` is its stem. */
  rarity(word: string, token: string): number;
  /** Cosine similarity of the word vectors. */
  likeness(word: string, other: string): number;
}

/** The vocabulary lists special tokens first, then words by frequency. */
const FIRST_WORD = 1_995;
const COMMON_LOG = 6.5;
const RARE_LOG = 9.6;
/** Minimum rarity of a word of several subwords. */
const LEAST_OF_PARTS = 0.5;
const WORD = /^[a-z]+$/;
const REMEMBERED = 4_000;

export function createWordRarity(table: () => StaticTable): WordRarity {
  const vectors = new Map<string, Float32Array>();

  function vectorOf(word: string): Float32Array {
    const known = vectors.get(word);
    if (known !== undefined) return known;
    if (vectors.size === REMEMBERED) vectors.clear();
    const fresh = wordVector(table(), word);
    vectors.set(word, fresh);
    return fresh;
  }

  return {
    rarity(word, token) {
      if (!WORD.test(word)) return 1;
      const { vocabulary } = table();
      const pieces = wordPieces(word, vocabulary);
      const whole = [pieces, wordPieces(token, vocabulary)].flatMap((each) =>
        each.length === 1 ? rarityOf(each[0] as number) : [],
      );
      if (whole.length > 0) return Math.min(...whole);
      return pieces.length === 0 ? 1 : Math.max(LEAST_OF_PARTS, rarityOf(Math.max(...pieces)));
    },
    likeness(word, other) {
      const [one, two] = [vectorOf(word), vectorOf(other)];
      return one.reduce((sum, value, axis) => sum + value * (two[axis] as number), 0);
    },
  };
}

function rarityOf(piece: number): number {
  const log = Math.log(Math.max(1, piece - FIRST_WORD));
  return Math.min(1, Math.max(0, (log - COMMON_LOG) / (RARE_LOG - COMMON_LOG)));
}
