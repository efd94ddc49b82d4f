import type { Result } from './types.ts';

export const COLUMNS = ['active', 'blocked', 'done'] as const;
export type TaskStatus = (typeof COLUMNS)[number];

export type Task = Result<'tasks/list'>['tasks'][number];
/** `fired`: when it was due; null before. */
type Card = Pick<Task, 'id' | 'status' | 'priority' | 'next' | 'fired' | 'created'>;

const RANK = { high: 0, medium: 1, low: 2 };

/** Tasks of each column, the urgent ones first: by priority, then by when they are or were due, then the newest. */
export function getColumns<T extends Card>(tasks: readonly T[], moved: ReadonlyMap<string, TaskStatus>) {
  const placed = tasks.map((task) => ({ ...task, status: moved.get(task.id) ?? task.status }));
  const sorted = placed.sort(
    (a, b) => RANK[a.priority] - RANK[b.priority] || dueTime(a) - dueTime(b) || b.created.localeCompare(a.created),
  );
  return COLUMNS.map((status) => ({ status, tasks: sorted.filter((task) => task.status === status) }));
}

const dueTime = ({ next, fired }: Card): number => Date.parse(next ?? fired ?? '9999-01-01');

/** The column beside one; null at the edge and for other keys. */
export function columnBeside(status: TaskStatus, key: string): TaskStatus | null {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
  return step === undefined ? null : (COLUMNS[COLUMNS.indexOf(status) + step] ?? null);
}
