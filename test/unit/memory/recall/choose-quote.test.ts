import { expect, test } from 'vitest';
import { chooseRaw } from '../../../../memory/recall/choose-quote.ts';
import { weighQuery } from '../../../../memory/recall/query-weights.ts';
import { uniqueTokens } from '../../../../memory/text/tokenizer.ts';

const tokens = uniqueTokens('how wide is the quiet zone of the barcodes');
const query = weighQuery(tokens, new Map(tokens.map((token) => [token, 1])));
const chosen = (...offered: (readonly [string, number])[]): string | undefined =>
  chooseRaw(
    offered.map(([text, rank]) => ({ text, rank, worth: rank, asked: '' })),
    query,
  )?.text;

test('the best line is shown, of two as good the later one', () => {
  expect(chosen(['a quiet zone', 2], ['a zone', 1])).toBe('a quiet zone');
  expect(chosen(['a quiet zone', 2], ['the quiet zone', 1.9])).toBe('the quiet zone');
  expect(chosen()).toBeUndefined();
});

test('a later line with another figure for the same thing takes the place of an older one', () => {
  const old = 'The quiet zone is 6 modules wide, the scanners need 10.';
  expect(chosen([old, 3], ['The quiet zone is 12 modules now.', 2])).toBe('The quiet zone is 12 modules now.');
  expect(chosen(['The quiet zone is 12 modules now.', 2], [old, 3])).toBe(old);
  expect(chosen([old, 3], ['12 parcels passed the zone', 2])).toBe(old);
});
