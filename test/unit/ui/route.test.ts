import fc from 'fast-check';
import { expect, it } from 'vitest';
import { getHash, linkParts, parseRoute, VIEWS } from '../../../ui/route.ts';

it('reads the addresses of the views', () => {
  expect(parseRoute('')).toEqual({ view: 'now', id: '', query: {} });
  expect(parseRoute('#/memory?q=which%20port&kind=turn')).toEqual({
    ...{ view: 'memory', id: '', query: { q: 'which port', kind: 'turn' } },
  });
  expect(parseRoute('#/node/mem_1')).toEqual({ view: 'memory', id: 'mem_1', query: {} });
  expect(parseRoute('#/library/topics/carrier')).toEqual({ view: 'library', id: 'topics/carrier', query: {} });
  expect(parseRoute('#/nothing/%E0')).toEqual({ view: 'now', id: '', query: {} });
});

it('gives back what it was given', () => {
  const text = fc.string({ unit: 'grapheme' });
  fc.assert(
    fc.property(fc.constantFrom(...VIEWS), text, fc.dictionary(text, text), (view, id, query) => {
      expect(parseRoute(getHash({ view, id, query }))).toEqual({ view, id, query });
    }),
  );
});

it('links what a text of the library names in memory', () => {
  const text = [
    '[Ports](topics/ports.md) [Renew](../tasks/active/a1.md) [Order](tasks/done/2026-11/b2.md)',
    '[late](../../memory/nodes/shop-1/5b0c.md#mem_1) [early](../memory/nodes/shop-1/5b0c.md) [out](https://a.example/x)',
    '[C# (old)](topics/team/C%23%20%28old%29.md)',
  ].join('\n');
  const parts = linkParts(text);
  expect(parts.flatMap(({ text: label, href }) => (href === undefined ? [] : [[label, href]]))).toEqual([
    ['Ports', '#/library/topics%2Fports'],
    ['Renew', '#/library/tasks'],
    ['Order', '#/library/tasks'],
    ['late', '#/node/mem_1'],
    ['early', '#/session/5b0c'],
    ['C# (old)', '#/library/topics%2Fteam%2FC%23%20(old)'],
  ]);
  expect(parts.map(({ text: part }) => part)).toContain(' [out](https://a.example/x)\n');
  const id = 'mem_20261127_022604_8d7d85';
  expect(linkParts(`Use port 7413 (${id})`)[1]).toEqual({ text: id, href: `#/node/${id}` });
  expect(linkParts('none')).toEqual([{ text: 'none' }]);
});
