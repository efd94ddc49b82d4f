import type { Vocabulary } from './wordpiece-vocabulary.ts';

const HAN = /\p{sc=Han}/gu;
const MARKS = /\p{Mn}/gu;
const WORDS = /[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu;
const MAX_PIECE = 30;
const HAS_WORD = /[\p{L}\p{N}]/u;
/** Longer ones are encoded data: their pieces would only be noise. */
const MAX_WORD = 100;

/**
 * Cuts a text into the pieces a vocabulary knows, each word greedily from its start; a word that cannot be cut gives
 * nothing, and so do marks alone. Accents and case are left out. Total: any string gives a list, possibly empty, in order of the text.
 *
 * Source: WordPiece, as uncased BERT models use it.
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
