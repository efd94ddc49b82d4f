import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRowIds } from '../../../../memory/search/row-ids.ts';
import { createTextIds } from '../../../../memory/search/string-interner.ts';

const step = fc.record({
  node: fc.constantFrom('n', 'n:', 'm', ''),
  turn: fc.constantFrom('t', 'u', ''),
  behind: fc.constantFrom('', ':t', ':u', '#0', '#1', ':'),
  apart: fc.boolean(),
  stays: fc.boolean(),
});

test('whatever an id is made of, its slot is found by it and gives it back, until it is removed', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const names = createTextIds();
      names.of('');
      const ids = createRowIds(names);
      const expected = new Map<string, number>();
      for (const [slot, { node, turn, behind, apart, stays }] of steps.entries()) {
        const rowId = apart ? `apart${behind}` : `${node}${behind}`;
        const before = expected.get(rowId);
        if (before !== undefined) ids.remove(before);
        ids.put(slot, { row_id: rowId, node_id: node, turn }, { node: names.of(node), turn: names.of(turn) });
        expected.set(rowId, slot);
        if (stays) continue;
        ids.remove(slot);
        expected.delete(rowId);
        expect([ids.find(rowId), ids.idOf(slot)]).toEqual([undefined, '']);
      }
      for (const [rowId, slot] of expected) expect([ids.find(rowId), ids.idOf(slot)]).toEqual([slot, rowId]);
      expect(ids.count()).toBe(expected.size);
      ids.clear();
      for (const rowId of expected.keys()) expect(ids.find(rowId)).toBe(undefined);
    }),
  );
});

test('thousands that come and go leave room for those that stay', () => {
  const names = createTextIds();
  const ids = createRowIds(names);
  const node = names.of('node');
  for (let slot = 0; slot < 10_000; slot += 1) {
    ids.put(slot, { row_id: `node#${slot}`, node_id: 'node', turn: '' }, { node, turn: node });
    if (slot % 10 !== 0) ids.remove(slot);
  }
  expect(ids.count()).toBe(1_000);
  expect([ids.find('node#9990'), ids.find('node#0'), ids.find('node#9991')]).toEqual([9_990, 0, undefined]);
});
