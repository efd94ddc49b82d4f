/** Two plain methods over the same turns: what memory has to be better than. */
import type { RealTurn } from './corpus.ts';
import { wordsIn } from './right.ts';

export interface PlainRanking {
  /** Best first. */
  bm25(query: string): readonly RealTurn[];
  keywordCount(query: string): readonly RealTurn[];
  /** The best piece of the best turn by BM25. */
  snippet(query: string): string;
  /** The end of that turn, as long. */
  ending(query: string): string;
}

const K1 = 1.2;
const B = 0.75;
export const SNIPPET_CHARS = 800;

export function createPlainRanking(turns: readonly RealTurn[]): PlainRanking {
  const byTurn = scorerOf(turns.map(({ text }) => text));
  const words = turns.map(({ text }) => new Set(wordsIn(text)));

  function ranked(scores: readonly number[]): RealTurn[] {
    const places = [...turns.keys()].filter((at) => (scores[at] as number) > 0);
    // Of equal ones the newest first.
    const newest = (at: number): number => turns[at]?.endMs ?? 0;
    places.sort((a, b) => (scores[b] as number) - (scores[a] as number) || newest(b) - newest(a));
    return places.map((at) => turns[at] as RealTurn);
  }

  const bm25 = (query: string): RealTurn[] => ranked(byTurn(query));

  return {
    bm25,
    keywordCount(query) {
      const asked = [...new Set(wordsIn(query))];
      return ranked(words.map((known) => asked.filter((word) => known.has(word)).length));
    },
    snippet(query) {
      const pieces = piecesOf(bm25(query)[0]?.text ?? '');
      const scores = scorerOf(pieces)(query);
      return pieces[scores.indexOf(Math.max(...scores))] ?? '';
    },
    ending: (query) => bm25(query)[0]?.text.slice(-SNIPPET_CHARS) ?? '',
  };
}

/** Okapi BM25 of each text for a query. */
function scorerOf(texts: readonly string[]): (query: string) => number[] {
  const counts = texts.map((text) => {
    const own = new Map<string, number>();
    for (const word of wordsIn(text)) own.set(word, (own.get(word) ?? 0) + 1);
    return own;
  });
  const lengths = counts.map((own) => [...own.values()].reduce((sum, count) => sum + count, 0));
  const mean = lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, texts.length);
  const holders = new Map<string, number>();
  for (const own of counts) for (const word of own.keys()) holders.set(word, (holders.get(word) ?? 0) + 1);
  return (query) => {
    const asked = [...new Set(wordsIn(query))].map((word) => {
      const holding = holders.get(word) ?? 0;
      return { word, idf: Math.log(1 + (texts.length - holding + 0.5) / (holding + 0.5)) };
    });
    return counts.map((own, at) => {
      const norm = K1 * (1 - B + (B * (lengths[at] as number)) / mean);
      return asked.reduce((sum, { word, idf }) => {
        const count = own.get(word) ?? 0;
        return sum + (idf * count * (K1 + 1)) / (count + norm);
      }, 0);
    });
  };
}

/** Overlapping by half. */
function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  for (let start = 0; start === 0 || start + SNIPPET_CHARS / 2 < text.length; start += SNIPPET_CHARS / 2) {
    pieces.push(text.slice(start, start + SNIPPET_CHARS));
  }
  return pieces;
}
