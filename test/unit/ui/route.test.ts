import fc from 'fast-check';
import { expect, it } from 'vitest';
import { getHash, parseRoute, VIEWS } from '../../../ui/route.ts';

it('reads the addresses of the views', () => {
  expect(parseRoute('')).toEqual({ view: 'now', id: '', query: '' });
  expect(parseRoute('#/memory?q=which%20port')).toEqual({ view: 'memory', id: '', query: 'which port' });
  expect(parseRoute('#/node/mem_1')).toEqual({ view: 'memory', id: 'mem_1', query: '' });
  expect(parseRoute('#/library/topics/carrier')).toEqual({ view: 'library', id: 'topics/carrier', query: '' });
  expect(parseRoute('#/nothing/%E0')).toEqual({ view: 'now', id: '', query: '' });
});

it('gives back what it was given', () => {
  const text = fc.string({ unit: 'grapheme' });
  fc.assert(
    fc.property(fc.constantFrom(...VIEWS), text, text, (view, id, query) => {
      expect(parseRoute(getHash({ view, id, query }))).toEqual({ view, id, query });
    }),
  );
});
