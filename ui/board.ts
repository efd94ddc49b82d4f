export const COLUMNS = ['active', 'blocked', 'done'] as const;
export type TaskStatus = (typeof COLUMNS)[number];

interface Card {
  readonly id: string;
  readonly status: TaskStatus;
  readonly priority: 'low' | 'medium' | 'high';
  readonly next: string | null;
  /** When it was due; null before. */
  readonly fired: string | null;
  readonly created: string;
}

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
