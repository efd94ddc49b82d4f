import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type BookedRow, createRowBook } from '../../../../memory/search/row-table.ts';

const row = (row_id: string, node_id: string, over: Partial<BookedRow> = {}): BookedRow => ({
  row_id,
  kind: 'node',
  node_id,
  session_id: 's',
  project: 'p',
  turn: '',
  origin: 'user',
  created_at_ms: 1,
  before: [],
  sources: [],
  timed: false,
  digest: `digest of ${node_id}`,
  ...over,
});

test('a row is given back without its digest, which its node keeps', () => {
  const book = createRowBook();
  book.put(row('a', 'a'));
  book.put(row('a:t1', 'a', { kind: 'turn', turn: 't1', before: ['t0'], digest: '' }));
  const { digest: _, ...found } = row('a:t1', 'a', { kind: 'turn', turn: 't1', before: ['t0'] });
  expect(book.get('a:t1')).toEqual(found);
  expect(book.entries()).toEqual(new Map([['a', { digest: 'digest of a', turns: ['t1'] }]]));
  expect([book.count(), book.rowsOf('a'), book.rowsOf('b')]).toEqual([2, ['a', 'a:t1'], []]);
});

test('a row of a known id takes its place, even in another node', () => {
  const book = createRowBook();
  book.put(row('x', 'a'));
  book.put(row('x', 'b', { digest: 'newer' }));
  expect(book.entries()).toEqual(new Map([['b', { digest: 'newer', turns: [] }]]));
  expect(book.nodeIds()).toEqual(new Set(['b']));
});

test('what is removed is gone, and unknown rows are no error', () => {
  const book = createRowBook();
  book.put(row('a', 'a'));
  book.put(row('a:t1', 'a', { kind: 'turn', turn: 't1' }));
  book.remove('a');
  book.remove('unknown');
  expect(book.entries()).toEqual(new Map([['a', { digest: '', turns: ['t1'] }]]));
  book.remove('a:t1');
  expect([book.count(), book.nodeIds().size, book.get('a')]).toEqual([0, 0, undefined]);
});

test('it knows of which kinds it has rows', () => {
  const book = createRowBook();
  const held = () => (['node', 'turn', 'fact'] as const).filter(book.holds);
  book.put(row('a', 'a'));
  book.put(row('a:t1', 'a', { kind: 'turn' }));
  book.put(row('a:t1', 'a', { kind: 'turn' }));
  expect(held()).toEqual(['node', 'turn']);
  book.remove('a:t1');
  expect(held()).toEqual(['node']);
  book.clear();
  expect(held()).toEqual([]);
});

const names = fc.constantFrom('', 'a', 'b', 'c');
const anyRow = fc.record({
  row_id: fc.constantFrom('r1', 'r2', 'r3', 'r4'),
  kind: fc.constantFrom('node' as const, 'turn' as const, 'fact' as const),
  node_id: fc.constantFrom('n1', 'n2'),
  session_id: names,
  project: names,
  turn: names,
  origin: fc.constantFrom('user' as const, 'assistant' as const, 'tool' as const, 'external' as const),
  created_at_ms: fc.nat(),
  before: fc.subarray(['t1', 't2', 't3']),
  sources: fc.subarray(['t1', 't4']),
  timed: fc.boolean(),
});

test('whatever is put and removed, each row is given back as it was put last, whole and column by column', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(anyRow, fc.boolean()), { maxLength: 30 }), (steps) => {
      const book = createRowBook();
      const expected = new Map<string, BookedRow>();
      for (const [drawn, stays] of steps) {
        const put = { ...drawn, digest: '' };
        book.put(put);
        expected.set(put.row_id, put);
        if (stays) continue;
        book.remove(put.row_id);
        expected.delete(put.row_id);
      }
      expect(book.count()).toBe(expected.size);
      for (const { digest: _, ...found } of expected.values()) {
        const slot = book.slotOf(found.row_id) as number;
        expect([book.at(slot), book.get(found.row_id)]).toEqual([found, found]);
        expect([book.atMs(slot), book.isTimed(slot)]).toEqual([found.created_at_ms, found.timed]);
        expect([book.nodeOf(slot), book.turnOf(slot)]).toEqual([found.node_id, found.turn].map(book.numberOf));
        const said = [1, 2, 3, 4].map((by) => book.nameOf(book.beforeOf(slot, by)));
        expect(said).toEqual([0, 1, 2, 3].map((at) => found.before[at] ?? ''));
        const sources = [0, 1, 2].map((nth) => book.nameOf(book.sourceOf(slot, nth)));
        expect(sources).toEqual([0, 1, 2].map((at) => found.sources[at] ?? ''));
      }
    }),
  );
});
