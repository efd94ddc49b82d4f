import { expect, test } from 'vitest';
import { createNodeRegistry } from '../../../../memory/storage/node-registry.ts';
import { makeNode } from '../../../helpers/nodes.ts';

test('a turn is stood for by one node, by several in their order, by none once they are gone', () => {
  const catalogue = createNodeRegistry();
  expect(catalogue.nodesCovering('t')).toEqual([]);
  catalogue.put([makeNode({ node_id: 'a', turns: ['t', 't'] })]);
  expect(catalogue.nodesCovering('t')).toEqual(['a']);
  catalogue.put([makeNode({ node_id: 'b', turns: ['t', 'u'] })]);
  catalogue.put([makeNode({ node_id: 'c', turns: ['t'] })]);
  expect(catalogue.nodesCovering('t')).toEqual(['a', 'b', 'c']);
  catalogue.put([makeNode({ node_id: 'a', turns: ['u'] })]);
  expect(catalogue.nodesCovering('t')).toEqual(['b', 'c']);
  expect(catalogue.nodesCovering('u')).toEqual(['b', 'a']);
  catalogue.remove(['b', 'c']);
  expect(catalogue.nodesCovering('t')).toEqual([]);
  expect(catalogue.nodesCovering('u')).toEqual(['a']);
});

test('a session has as many nodes as were put and not removed', () => {
  const catalogue = createNodeRegistry();
  catalogue.put(['a', 'b', 'a'].map((node_id) => makeNode({ node_id, session_id: 's' })));
  catalogue.put([makeNode({ node_id: 'c', session_id: 'other' })]);
  expect(catalogue.getSize('s')).toBe(2);
  catalogue.remove(['a', 'a', 'gone']);
  expect([catalogue.getSize('s'), catalogue.getSize('other'), catalogue.getSize('none')]).toEqual([1, 1, 0]);
});

test('the revision is another after each change, and the same after none', () => {
  const catalogue = createNodeRegistry();
  const before = catalogue.revision();
  catalogue.put([]);
  catalogue.remove([]);
  expect(catalogue.revision()).toBe(before);
  catalogue.put([makeNode({ node_id: 'a' })]);
  const added = catalogue.revision();
  catalogue.remove(['a']);
  expect(new Set([before, added, catalogue.revision()]).size).toBe(3);
});
