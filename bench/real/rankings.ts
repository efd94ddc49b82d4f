/** Two plain methods over the same turns: what memory has to be better than. */
import { bestSnippet, createBm25, findWords } from '../../memory/bench/bm25.ts';
import type { RealTurn } from './corpus.ts';

export interface PlainRanking {
  /** Best first. */
  bm25(query: string): readonly RealTurn[];
  keywordCount(query: string): readonly RealTurn[];
  /** The best piece of the best turn by BM25. */
  snippet(query: string): string;
  /** The end of that turn, as long. */
  ending(query: string): string;
}

export const SNIPPET_CHARS = 800;

export function createPlainRanking(turns: readonly RealTurn[]): PlainRanking {
  const byTurn = createBm25(turns.map(({ text }) => text));
  const words = turns.map(({ text }) => new Set(findWords(text)));

  function ranked(scores: readonly number[]): RealTurn[] {
    const places = [...turns.keys()].filter((at) => (scores[at] as number) > 0);
    // Of equal ones the newest first.
    const newest = (at: number): number => turns[at]?.endMs ?? 0;
    places.sort((a, b) => (scores[b] as number) - (scores[a] as number) || newest(b) - newest(a));
    return places.map((at) => turns[at] as RealTurn);
  }

  const bm25 = (query: string): RealTurn[] => ranked(byTurn.scores(query));

  return {
    bm25,
    keywordCount(query) {
      const asked = [...new Set(findWords(query))];
      return ranked(words.map((known) => asked.filter((word) => known.has(word)).length));
    },
    snippet: (query) => bestSnippet(bm25(query)[0]?.text ?? '', query, SNIPPET_CHARS),
    ending: (query) => bm25(query)[0]?.text.slice(-SNIPPET_CHARS) ?? '',
  };
}
