import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createVocabulary, wordPieces } from '../../../../memory/embeddings/wordpiece.ts';

const WORDS = ['data', '##base', 'port', '##s', 'p', '.', 'cafe', '水', '##o', '2', '##5', 'base', 'ᄃ', '##ᅦ'];
const vocabulary = createVocabulary(WORDS.join('\n'));
const pieces = (text: string): string[] => wordPieces(text, vocabulary).map((id) => WORDS[id] as string);

test('a word is cut greedily, its later pieces marked as such', () => {
  expect(pieces('Databases')).toEqual(['data', '##base', '##s']);
  expect(pieces('base PORTS.')).toEqual(['base', 'port', '##s', '.']);
});

test('a word that cannot be cut to its end gives nothing', () => {
  expect(pieces('porting database')).toEqual(['data', '##base']);
  expect(pieces('...')).toEqual([]);
  expect(pieces('')).toEqual([]);
});

test('accents and case are left out, Han characters stand alone, Hangul is taken apart', () => {
  expect(pieces('Café CAFE')).toEqual(['cafe', 'cafe']);
  expect(pieces('水水port')).toEqual(['水', '水', 'port']);
  expect(pieces('데')).toEqual(['ᄃ', '##ᅦ']);
});

test('encoded data of more than a hundred characters gives nothing', () => {
  expect(pieces(`p${'o'.repeat(99)}`)).toHaveLength(100);
  expect(pieces(`p${'o'.repeat(100)}`)).toEqual([]);
});

test('every word of a vocabulary is found under its own number, and nothing else is', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.stringMatching(/^(##)?[a-zé水]{1,6}$/u), { minLength: 1, maxLength: 200 }),
      fc.stringMatching(/^[a-zé水]{1,7}$/u),
      (words, other) => {
        const { idOf, size } = createVocabulary(words.join('\n'));
        expect(size).toBe(words.length);
        for (const [id, word] of words.entries()) {
          const inside = word.startsWith('##');
          const text = inside ? `x${word.slice(2)}` : word;
          expect(idOf(text, inside ? 1 : 0, text.length)).toBe(id);
        }
        expect(idOf(other, 0, other.length)).toBe(words.includes(other) ? words.indexOf(other) : undefined);
      },
    ),
  );
});
