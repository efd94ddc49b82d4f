const HAN = /\p{sc=Han}/gu;
const MARKS = /\p{Mn}/gu;
const WORDS = /[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu;
const MAX_PIECE = 30;
const HAS_WORD = /[\p{L}\p{N}]/u;
/** Longer ones are encoded data. */
const MAX_WORD = 100;

/**
 * Splits a text into subword ids, each word greedily from its start; a word that cannot be split is skipped. Accents and
 * case are dropped.
 *
 * Source: WordPiece, as in uncased BERT models.
 */
export function wordPieces(text: string, vocabulary: Vocabulary): number[] {
  if (!HAS_WORD.test(text)) return [];
  const plain = text.normalize('NFD').replace(MARKS, '').toLowerCase().replace(HAN, ' $& ');
  const found: number[] = [];
  for (const [word] of plain.matchAll(WORDS)) {
    if (word.length <= MAX_WORD) pushPieces(word, vocabulary, found);
  }
  return found;
}

function pushPieces(word: string, vocabulary: Vocabulary, found: number[]): void {
  const before = found.length;
  let at = 0;
  while (at < word.length) {
    let end = Math.min(word.length, at + MAX_PIECE);
    let id: number | undefined;
    for (; end > at; end -= 1) {
      id = vocabulary.idOf(word, at, end);
      if (id !== undefined) break;
    }
    if (id === undefined) {
      found.length = before;
      return;
    }
    found.push(id);
    at = end;
  }
}

export interface Vocabulary {
  readonly size: number;
  /** Id of `word.slice(start, end)`, with the prefix "##" if `start` is not 0. */
  idOf(word: string, start: number, end: number): number | undefined;
}

const INSIDE = '##';
const LINE_FEED = 10;
const SEED = 0x811c_9dc5;
const INSIDE_SEED = hashed(INSIDE, 0, INSIDE.length, SEED);

/** @param lines  one subword per line, at most 65,534; its id is the line number */
export function createVocabulary(lines: string): Vocabulary {
  const ends = endsOf(lines);
  const mask = 2 ** Math.ceil(Math.log2(ends.length * 2)) - 1;
  /** Id + 1 by hash, open addressing; 0 is free. */
  const slots = new Uint16Array(mask + 1);
  const startOf = (id: number): number => (id === 0 ? 0 : (ends[id - 1] as number) + 1);
  for (let id = 0; id < ends.length; id += 1) {
    let slot = hashed(lines, startOf(id), ends[id] as number, SEED) & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    slots[slot] = id + 1;
  }

  function isPiece(id: number, word: string, start: number, end: number): boolean {
    const at = startOf(id) + (start === 0 ? 0 : INSIDE.length);
    if ((ends[id] as number) - at !== end - start) return false;
    if (start > 0 && !lines.startsWith(INSIDE, at - INSIDE.length)) return false;
    for (let index = start; index < end; index += 1) {
      if (word.charCodeAt(index) !== lines.charCodeAt(at + index - start)) return false;
    }
    return true;
  }

  return {
    size: ends.length,
    idOf(word, start, end) {
      let slot = hashed(word, start, end, start === 0 ? SEED : INSIDE_SEED) & mask;
      for (let held = slots[slot]; held; held = slots[slot]) {
        if (isPiece(held - 1, word, start, end)) return held - 1;
        slot = (slot + 1) & mask;
      }
      return undefined;
    },
  };
}

function endsOf(lines: string): Uint32Array {
  const ends: number[] = [];
  for (let at = 0; at < lines.length; at += 1) if (lines.charCodeAt(at) === LINE_FEED) ends.push(at);
  return Uint32Array.from([...ends, lines.length]);
}

/** FNV-1a over UTF-16 units. */
function hashed(text: string, start: number, end: number, seed: number): number {
  let hash = seed;
  for (let at = start; at < end; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193);
  return hash;
}
