import { expect, test } from 'vitest';
import { type BookedRow, createRowBook } from '../../../../memory/core/row-book.ts';

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
