import { coveredWorth, type QueryWeights } from './gate.ts';
import { tokenize } from './tokens.ts';

export interface Snippet {
  /** Whole lines or sentences of the text, verbatim but for white space at its ends. */
  readonly text: string;
  /** Worth of the query's terms in it. */
  readonly worth: number;
}

const READ_CHARS = 100_000;
const SENTENCE_END = /(?<=[.!?])\s+|(?<=[。！？])/u;
/** A line that asks repeats the query and answers nothing. */
const QUESTION_SHARE = 0.5;
/** Between two lines that say as much the one with a figure, path or name is the one to show. */
const EXACT_BONUS = 1.15;
const EXACT = /\d|[\w-]+[./_][\w-]+|`[^`]+`/;

/** The line (or sentence of a long line) of `text` that covers most of the query; null where none covers anything. */
export function bestSnippet(text: string, query: QueryWeights, maxChars: number): Snippet | null {
  const roots = [...query.terms.keys()].map((term) => (term.length > 4 ? term.slice(0, -1) : term));
  let best: (Snippet & { readonly rank: number }) | null = null;
  for (const line of text.slice(0, READ_CHARS).split('\n')) {
    const lower = line.toLowerCase();
    // Most lines share nothing with the query; looking for stems is far cheaper than taking each line apart.
    if (!roots.some((root) => lower.includes(root))) continue;
    for (const piece of piecesOf(line.trim(), maxChars)) {
      const worth = coveredWorth(query, new Set(tokenize(piece)));
      const rank = worth * (piece.endsWith('?') ? QUESTION_SHARE : 1) * (EXACT.test(piece) ? EXACT_BONUS : 1);
      if (rank > (best?.rank ?? 0)) best = { text: piece, worth, rank };
    }
  }
  return best === null ? null : { text: best.text, worth: best.worth };
}

/** The line itself, else its sentences, each joined with the next while they fit. */
function piecesOf(line: string, maxChars: number): string[] {
  if (line.length <= maxChars) return [line];
  const pieces: string[] = [];
  for (const sentence of line.split(SENTENCE_END)) {
    const last = pieces.at(-1);
    if (last !== undefined && last.length + sentence.length < maxChars)
      pieces[pieces.length - 1] = `${last} ${sentence}`;
    else pieces.push(...wordWindows(sentence, maxChars));
  }
  return pieces;
}

/** A sentence beyond all measure, in stretches of whole words; a word that fits nowhere is left out. */
function wordWindows(sentence: string, maxChars: number): string[] {
  if (sentence.length <= maxChars) return [sentence];
  const windows: string[] = [];
  for (const word of sentence.split(/\s+/)) {
    if (word.length > maxChars) continue;
    const last = windows.at(-1);
    if (last !== undefined && last.length + word.length < maxChars) windows[windows.length - 1] = `${last} ${word}`;
    else windows.push(word);
  }
  return windows;
}
