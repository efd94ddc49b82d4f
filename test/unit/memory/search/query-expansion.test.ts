import { expect, test } from 'vitest';
import { createThesaurus } from '../../../../memory/search/query-expansion.ts';

const MEANINGS: Record<string, readonly number[]> = {
  car: [1, 0],
  auto: [0.98, 0.2],
  truck: [0.8, 0.6],
  banana: [0, 1],
};
const vectorOf = (word: string): Float32Array => Float32Array.from(MEANINGS[word] ?? [0, 0]);
const everywhere = (tokens: readonly string[]): Map<string, number> => new Map(tokens.map((token) => [token, 1]));

function filled() {
  const thesaurus = createThesaurus(2, vectorOf);
  thesaurus.add(['auto', 'truck', 'banana', 'car', 'x1', '자동차', 'auto']);
  return thesaurus;
}

test('terms near in meaning are added with their likeness, best first, never those of the question', () => {
  const added = filled().expand('the car', everywhere);
  expect(added.map(([term]) => term)).toEqual(['auto', 'truck']);
  expect(added[0]?.[1]).toBeCloseTo(0.98);
});

test('what does not stand where the question is asked is not asked for', () => {
  expect(filled().expand('car', () => new Map([['truck', 1]]))).toHaveLength(1);
  expect(filled().expand('car', () => new Map())).toEqual([]);
});

test('terms that come later are found by words asked before', () => {
  const thesaurus = createThesaurus(2, vectorOf);
  expect(thesaurus.expand('car', everywhere)).toEqual([]);
  thesaurus.add(['auto']);
  expect(thesaurus.expand('car', everywhere).map(([term]) => term)).toEqual(['auto']);
});
