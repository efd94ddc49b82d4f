const K1 = 1.2;
const B = 0.75;

/** Okapi BM25 over whole texts, without stemming or stop words: what recall has to be better than. */
export function createBm25(texts: readonly string[] = []) {
  const rows: { readonly counts: ReadonlyMap<string, number>; readonly length: number }[] = [];
  const holders = new Map<string, number>();
  let total = 0;

  function add(text: string): void {
    const words = findWords(text);
    const counts = new Map<string, number>();
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
    for (const word of counts.keys()) holders.set(word, (holders.get(word) ?? 0) + 1);
    rows.push({ counts, length: words.length });
    total += words.length;
  }

  function scores(query: string): number[] {
    const terms = [...new Set(findWords(query))].map((word) => {
      const holding = holders.get(word) ?? 0;
      return { word, idf: Math.log(1 + (rows.length - holding + 0.5) / (holding + 0.5)) };
    });
    return rows.map(({ counts, length }) => {
      const norm = K1 * (1 - B + (B * length * rows.length) / total);
      return terms.reduce((sum, { word, idf }) => {
        const count = counts.get(word) ?? 0;
        return sum + (idf * count * (K1 + 1)) / (count + norm);
      }, 0);
    });
  }

  for (const text of texts) add(text);
  return {
    add,
    scores,
    /** Places of the texts with a word of the query, best first; of equal ones the newest first. */
    rank(query: string): number[] {
      const all = scores(query);
      const places = [...all.keys()].filter((at) => (all[at] as number) > 0);
      return places.sort((a, b) => (all[b] as number) - (all[a] as number) || b - a);
    },
  };
}

/** The piece of `chars` characters that fits best; pieces overlap by half. */
export function bestSnippet(text: string, query: string, chars: number): string {
  const pieces: string[] = [];
  for (let start = 0; start === 0 || start + chars / 2 < text.length; start += chars / 2)
    pieces.push(text.slice(start, start + chars));
  const scores = createBm25(pieces).scores(query);
  return pieces[scores.indexOf(Math.max(...scores))] ?? '';
}

export const findWords = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
