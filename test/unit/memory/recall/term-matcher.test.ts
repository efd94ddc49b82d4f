import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { WordRarity } from '../../../../memory/embeddings/static-encoder.ts';
import type { AskedTerm } from '../../../../memory/recall/required-terms.ts';
import { createTermMatcher } from '../../../../memory/recall/term-matcher.ts';
import { tokenize } from '../../../../memory/text/tokenizer.ts';

const WORDS =
  'billing billings timeout timeouts time port retryLimit retry limit 42 queue_v2 결제 lawyer attorney'.split(' ');
const lexicon: WordRarity = {
  rarity: () => 1,
  likeness: (one, other) => ((one.charCodeAt(0) + other.charCodeAt(0)) % 10) / 10,
};
const term = fc.record({ word: fc.constantFrom(...WORDS), known: fc.boolean(), exact: fc.boolean() });
const passage = fc.array(fc.constantFrom(...WORDS, 'and', 'Nothing'), { maxLength: 8 }).map((words) => words.join(' '));

/** Said plainly, over all tokens of one passage. */
function plainly({ token, word, parts, known, exact }: AskedTerm, text: string): number {
  const tokens = tokenize(text);
  if (tokens.includes(token) || (parts.length > 0 && parts.every((part) => tokens.includes(part)))) return 1;
  if (exact || !/^[a-z]{3,}$/.test(token)) return 0;
  const long = tokens.filter((other) => Math.min(other.length, token.length) >= 6);
  if (long.some((other) => other.startsWith(token) || token.startsWith(other))) return 0.9;
  const words = known ? [] : tokens.filter((other) => /^[a-z]{3,}$/.test(other));
  const best = Math.max(0, ...words.map((other) => lexicon.likeness(word, other)));
  return best >= 0.55 ? best : 0;
}

test('a matcher says of every passage what its tokens say, however many it has seen', () => {
  fc.assert(
    fc.property(fc.array(term, { maxLength: 5 }), fc.array(passage, { maxLength: 6 }), (drawn, passages) => {
      const terms = drawn.map(({ word, known, exact }): AskedTerm => {
        const [token = '', ...parts] = tokenize(word);
        return { token, word, parts, known, exact, weight: 1, idf: 1, named: false };
      });
      const matchesIn = createTermMatcher(terms, lexicon);
      for (const text of [...passages, ...passages]) {
        expect(matchesIn(text)).toEqual(terms.map((each) => plainly(each, text)));
      }
    }),
    { numRuns: 500 },
  );
});
