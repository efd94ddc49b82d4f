import { expect, it } from 'vitest';
import { columnBeside, getColumns } from '../../../ui/board.ts';

const task = (id: string, fields: object = {}) => ({
  ...{ id, status: 'active' as const, priority: 'medium' as const, next: null, fired: null },
  created: '2026-11-01',
  ...fields,
});

it('sorts a column by priority, then by when its tasks are due, then the newest first', () => {
  const tasks = [
    task('old', { created: '2026-01-01' }),
    task('new'),
    task('due', { next: '2026-11-24' }),
    task('overdue', { fired: '2026-11-20' }),
    task('urgent', { priority: 'high' }),
    task('done', { status: 'done' }),
  ];
  const columns = getColumns(tasks, new Map());
  expect(columns.map(({ status, tasks: own }) => [status, own.map(({ id }) => id)])).toEqual([
    ['active', ['urgent', 'overdue', 'due', 'new', 'old']],
    ['blocked', []],
    ['done', ['done']],
  ]);
});

it('shows a task where it was moved before the engine answers', () => {
  const [active, blocked] = getColumns([task('one')], new Map([['one', 'blocked']]));
  expect([active?.tasks, blocked?.tasks.map(({ id }) => id)]).toEqual([[], ['one']]);
});

it('has an edge on both sides', () => {
  expect(columnBeside('active', 'ArrowRight')).toBe('blocked');
  expect(columnBeside('blocked', 'ArrowLeft')).toBe('active');
  expect([columnBeside('active', 'ArrowLeft'), columnBeside('done', 'ArrowRight'), columnBeside('done', 'x')]).toEqual([
    ...[null, null, null],
  ]);
});
