import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { replaceDrafts } from '../../../../memory/model/edit.ts';
import { type MemoryNode, redirectTo } from '../../../../memory/model/node.ts';
import { createNodeRegistry } from '../../../../memory/storage/node-registry.ts';
import { makeNode } from '../../../helpers/nodes.ts';

const id = (index: number): string => `mem_20260301_101500_${index.toString(16).padStart(6, '0')}`;
const at = '2026-03-02T00:00:00.000Z';
const node = (index: number, turns: string[], writtenBy = 'local'): MemoryNode =>
  makeNode({ node_id: id(index), turns, written_by: writtenBy });

describe('the model’s nodes in the place of drafts', () => {
  test('one for one keeps the id', () => {
    const [fresh] = replaceDrafts([node(1, ['a', 'b'])], [node(9, ['a', 'b'], 'claude')], at);
    expect(fresh).toMatchObject({ node_id: id(1), author: { by: 'model', model: 'claude' } });
  });

  test('one for several leaves pointers, several for one get ids of their own', () => {
    const merged = replaceDrafts([node(1, ['a']), node(2, ['b'])], [node(9, ['a', 'b'], 'claude')], at);
    expect(merged.map((each) => [each.node_id, each.superseded_by])).toEqual([
      [id(1), null],
      [id(2), id(1)],
    ]);
    const split = replaceDrafts([node(1, ['a', 'b'])], [node(8, ['a'], 'claude'), node(9, ['b'], 'claude')], at);
    expect(split.map((each) => each.node_id)).toEqual([id(1), id(9)]);
  });

  test('a pin stays, except with a node of text from outside', () => {
    const draft = { ...node(1, ['a']), recall_mode: 'passive' as const, pinned_from: 'active' as const };
    const fresh = node(9, ['a'], 'claude');
    expect(replaceDrafts([draft], [fresh], at)).toMatchObject([{ recall_mode: 'passive', pinned_from: 'active' }]);
    const [outside] = replaceDrafts([draft], [{ ...fresh, origin: 'external' }], at);
    expect(outside).toMatchObject({ recall_mode: 'active' });
    expect(outside?.pinned_from).toBe(undefined);
  });

  test('in any partition every old id leads to a node of the model, and every turn is covered', () => {
    const labels = fc.array(fc.nat(3), { minLength: 1, maxLength: 8 });
    const partition = (groups: readonly number[], from: number, by: string): MemoryNode[] =>
      [...new Set(groups)].map((group) =>
        node(
          from + group,
          groups.flatMap((each, index) => (each === group ? [`t${index}`] : [])),
          by,
        ),
      );
    fc.assert(
      fc.property(
        labels.chain((one) =>
          fc.tuple(fc.constant(one), fc.array(fc.nat(3), { minLength: one.length, maxLength: one.length })),
        ),
        ([one, other]) => {
          const drafts = partition(one, 100, 'local');
          const catalogue = createNodeRegistry();
          catalogue.put(drafts);
          catalogue.put(replaceDrafts(drafts, partition(other, 200, 'claude'), at));
          for (const draft of drafts) expect(catalogue.current(draft.node_id)?.author.model).toBe('claude');
          for (const index of one.keys()) {
            const ids = catalogue.nodesCovering(`t${index}`);
            expect(ids.map((each) => catalogue.get(each)?.author.model)).toEqual(['claude']);
          }
          expect(catalogue.size()).toBe(new Set(other).size);
        },
      ),
    );
  });
});

describe('the catalogue', () => {
  test('a removed node covers no turn, and a pointer to it leads nowhere', () => {
    const catalogue = createNodeRegistry();
    catalogue.put([node(1, ['a'], 'claude'), redirectTo(node(2, ['b']), id(1), '2026-04-01T00:00:00.000Z')]);
    expect(catalogue.pointersTo(id(1)).map((each) => each.node_id)).toEqual([id(2)]);
    catalogue.remove([id(1)]);
    expect(catalogue.current(id(2))).toBeUndefined();
    expect(catalogue.nodesCovering('a')).toEqual([]);
  });

  test('tags come most used first, of the project alone', () => {
    const catalogue = createNodeRegistry();
    catalogue.put([
      makeNode({ node_id: id(1), topic_tags: ['a', 'b'] }),
      makeNode({ node_id: id(2), topic_tags: ['b'] }),
      makeNode({ node_id: id(3), topic_tags: ['c'], project: 'other' }),
    ]);
    expect(catalogue.tags('/home/dev/shop')).toEqual(['b', 'a']);
  });
});
