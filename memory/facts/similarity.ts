import { createRequire } from 'node:module';
import type { Similarity } from './fact-store.ts';

/** A different number, or a negation on one side only, is a different value however similar the rest. */
const MARKS = /\d+|\b(?:no|not|never|without|against|except)\b/gi;
const getMarks = (value: string): string => (value.toLowerCase().match(MARKS) ?? []).join();
/** At the usual `subcost` of 2, `photos` and `photography` score 0.75. */
const OPTIONS = { subcost: 1, force_ascii: false };

/** Paraphrases by the WRatio of fuzzball, which is loaded by the first score. */
export function fuzzySimilarity(threshold = 0.8): Similarity {
  const load = createRequire(import.meta.url);
  const score = (one: string, other: string): number =>
    isComparable(one, other) ? (load('fuzzball') as typeof import('fuzzball')).WRatio(one, other, OPTIONS) / 100 : 0;
  return { threshold, score };
}

/** False for values that are different however similar the rest. */
export const isComparable = (one: string, other: string): boolean => getMarks(one) === getMarks(other);
