import { STOP_WORDS, tokenize, uniqueTokens } from '../text/tokenizer.ts';
import { createVectorTable } from './quantized-vectors.ts';

/** A term of the corpus and how much it counts. */
export type WeightedTerm = readonly [term: string, weight: number];

/** The words of a corpus by meaning, to ask for what was said in other words. Held in memory. */
export interface Thesaurus {
  /** `tokens` may repeat and may be known. */
  add(tokens: Iterable<string>): void;
  /**
   * Terms near in meaning to the words of a question and not in it, best first.
   *
   * @param idf  what each of these tokens is worth where the question is asked; 0 or absent where it does not stand
   */
  expand(question: string, idf: (tokens: readonly string[]) => ReadonlyMap<string, number>): WeightedTerm[];
}

const WORD = /[a-z]{3,}/g;
const WHOLE_WORD = /^[a-z]{3,}$/;
/** Beyond it a question takes too long; what comes late in a large corpus is rarely a word. */
const MAX_TERMS = 12_000;
const ASKED_WORDS = 12;
const NEAR_TERMS = 12;
const NEAR_KEPT = 24;
const LEAST_LIKENESS = 0.35;
const MOST_ADDED = 16;
const REMEMBERED_WORDS = 2_000;

interface Neighbours {
  /** So many terms were looked at. */
  seen: number;
  near: WeightedTerm[];
}

/** @param vectorOf  a word's vector of length 1, or zeros */
export function createThesaurus(dimensions: number, vectorOf: (word: string) => Float32Array): Thesaurus {
  const terms: string[] = [];
  const known = new Set<string>();
  const remembered = new Map<string, Neighbours>();
  const vectors = createVectorTable(dimensions);
  let placed = 0;

  function place(): void {
    for (; placed < terms.length; placed += 1) vectors.set(placed, vectorOf(terms[placed] as string));
  }

  function nearest(word: string): readonly WeightedTerm[] {
    const held = remembered.get(word) ?? { seen: 0, near: [] };
    remembered.delete(word);
    remembered.set(word, held);
    for (const oldest of remembered.keys()) {
      if (remembered.size <= REMEMBERED_WORDS) break;
      remembered.delete(oldest);
    }
    if (held.seen === placed) return held.near;
    const likenesses = vectors.products(vectorOf(word), held.seen, placed);
    const fresh: WeightedTerm[] = [];
    for (let at = held.seen; at < placed; at += 1) {
      const likeness = likenesses[at - held.seen] as number;
      if (likeness >= LEAST_LIKENESS) fresh.push([terms[at] as string, likeness]);
    }
    held.near = [...held.near, ...fresh].sort(([, one], [, other]) => other - one).slice(0, NEAR_KEPT);
    held.seen = placed;
    return held.near;
  }

  return {
    add(tokens) {
      for (const token of tokens) {
        if (terms.length === MAX_TERMS) return;
        if (known.has(token) || !WHOLE_WORD.test(token)) continue;
        known.add(token);
        terms.push(token);
      }
    },
    expand(question, idf) {
      place();
      const own = new Set(uniqueTokens(question));
      const near = new Map(askedWords(question, idf).map((word) => [word, nearest(word)]));
      const worth = idf([...new Set([...near.values()].flat().map(([term]) => term))]);
      const added = new Map<string, number>();
      for (const found of near.values()) {
        const usable = found.filter(([term]) => !own.has(term) && (worth.get(term) ?? 0) > 0);
        for (const [term, likeness] of usable.slice(0, NEAR_TERMS)) {
          added.set(term, Math.max(added.get(term) ?? 0, likeness));
        }
      }
      const telling = ([term, likeness]: WeightedTerm): number => likeness * (worth.get(term) ?? 0);
      return [...added].sort((one, other) => telling(other) - telling(one)).slice(0, MOST_ADDED);
    },
  };
}

/** The question's rarest words. */
function askedWords(question: string, idf: (tokens: readonly string[]) => ReadonlyMap<string, number>): string[] {
  const words = [...new Set(question.toLowerCase().match(WORD))].filter((word) => !STOP_WORDS.has(word));
  if (words.length <= ASKED_WORDS) return words;
  const stems = new Map(words.map((word) => [word, tokenize(word)[0] ?? '']));
  const worth = idf([...stems.values()]);
  const worthOf = (word: string): number => worth.get(stems.get(word) ?? '') ?? 0;
  return words.sort((one, other) => worthOf(other) - worthOf(one)).slice(0, ASKED_WORDS);
}
