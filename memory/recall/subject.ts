import { contentTokens } from '../text/keywords.ts';
import { tokenize } from '../text/tokenizer.ts';

const LEAD = '(?:(?:the|our|an?|my|your|this|that|new|old)\\s+)*';
const WORD = '([\\p{L}\\p{N}_]+)';
const AUXILIARY = 'does|did|do|is|are|was|were|has|had|can|could|may|must|should|will|would';
/** What follows an auxiliary or "of", and what a preposition ends a clause with, but for those of time. */
const PLACES = [
  `\\b(?:${AUXILIARY}|of)\\s+${LEAD}${WORD}`,
  `\\b(?:for|in|to|from|about|with)\\s+${LEAD}${WORD}(?=\\s*(?:[?.,;!]|$))`,
].map((pattern) => new RegExp(pattern, 'giu'));

/** Tokens of the thing that a question is about: the last that stands in such a place, else its last word. */
export function subjectTokens(question: string): readonly string[] {
  const content = contentTokens(question);
  const known = new Set(content);
  const found = PLACES.flatMap((place) => [...question.matchAll(place)])
    .map((match) => ({ end: match.index + match[0].length, tokens: tokenize(match[1] ?? '') }))
    .filter(({ tokens }) => tokens.some((token) => known.has(token)))
    .sort((one, other) => one.end - other.end);
  return found.at(-1)?.tokens ?? content.slice(-1);
}
