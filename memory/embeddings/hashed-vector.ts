import { tokenize } from '../text/tokenizer.ts';
import { toUnit } from './word-vectors.ts';

/** Longer texts are cut before they are embedded; full-text search covers all of them. */
const MAX_CHARS = 20_000;
/** Together the character n-grams of a word weigh as much as the word itself. */
const GRAM_SHARE = 1;

/**
 * A vector without a model: words and their character 3- and 4-grams, hashed with a sign.
 *
 * @returns a unit vector, or all zeros for a text without words
 */
export function hashVector(text: string, dimensions: number): Float32Array {
  const counts = new Map<string, number>();
  for (const token of tokenize(text.slice(0, MAX_CHARS))) counts.set(token, (counts.get(token) ?? 0) + 1);
  const vector = new Float32Array(dimensions);
  for (const [token, count] of counts) {
    const weight = Math.sqrt(count);
    addFeature(vector, `w:${token}`, weight);
    const grams = characterGrams(token);
    for (const gram of grams) addFeature(vector, gram, (weight * GRAM_SHARE) / Math.sqrt(grams.length));
  }
  return toUnit(vector);
}

function characterGrams(token: string): string[] {
  const points = [...`^${token}$`];
  const grams: string[] = [];
  for (const size of [3, 4]) {
    for (let at = 0; at + size <= points.length; at += 1) grams.push(points.slice(at, at + size).join(''));
  }
  return grams;
}

function addFeature(vector: Float32Array, feature: string, weight: number): void {
  const hash = fnv1a(feature);
  const slot = hash % vector.length;
  const sign = hash & 0x8000_0000 ? -1 : 1;
  vector[slot] = (vector[slot] ?? 0) + sign * weight;
}

/** FNV-1a over UTF-16 units with a final mix, because slot and sign take few of its bits. */
function fnv1a(text: string): number {
  let hash = 0x811c_9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
}
