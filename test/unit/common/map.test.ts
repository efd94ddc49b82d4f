import { expect, test } from 'vitest';
import { LruMap } from '../../../common/map.ts';

test('the entries that were used last stay, as far as their sizes allow', () => {
  const texts = new LruMap<string, string>(6, ({ length }) => length);
  texts.set('a', '12').set('b', '34').set('c', '56');
  texts.get('a');
  texts.peek('b');
  texts.set('d', '7');
  expect([...texts.keys()]).toEqual(['c', 'a', 'd']);
  texts.set('a', '123').delete('c');
  expect([...texts.set('e', '89')]).toEqual([
    ['d', '7'],
    ['a', '123'],
    ['e', '89'],
  ]);
  texts.set('f', 'too long');
  expect(texts.size).toBe(0);
  texts.clear();
  expect([...texts.set('g', '123456').keys()]).toEqual(['g']);
});
