import type { Problem } from '../../common/errors.ts';
import { type Task, type TaskListing, taskId } from '../model/task.ts';

/** A problem of one task, under its name. */
export interface TaskProblem extends Problem {
  readonly kind: 'dead_link' | 'contradiction' | 'unreadable';
}

/** Files that cannot be used, dependencies that are no task, and tasks that wait for themselves. @param listing  of all */
export function lintTasks({ tasks, problems }: TaskListing, getFile: (name: string) => string | null): TaskProblem[] {
  const byName = new Map(
    tasks.flatMap((task) => [[task.name.toLowerCase(), task] as const, [taskId(task.name), task]]),
  );
  const open = tasks.filter(({ status }) => status !== 'done');
  const unread = new Set(problems.map(({ file }) => file.replace(/^.*[\\/]|\.md$/g, '').toLowerCase()));
  return [
    ...problems.map((problem): TaskProblem => ({ ...problem, kind: 'unreadable' })),
    ...open.flatMap((task): TaskProblem[] => {
      const file = getFile(task.name) ?? task.name;
      const lost = task.depends_on
        .map((name) => name.toLowerCase())
        .filter((name) => !byName.has(name) && !unread.has(name));
      const missing = lost.map((name): TaskProblem => {
        return { file, kind: 'dead_link', message: `depends on ${name}, which is no task` };
      });
      if (!isWaitingFor(task, task.depends_on, tasks)) return missing;
      return [...missing, { file, kind: 'contradiction', message: 'waits for itself: see depends_on' }];
    }),
  ];
}

/** Whether one of these tasks, by name or id, is `task`, or depends on it directly or through others. */
export function isWaitingFor(task: Pick<Task, 'name'>, names: readonly string[], tasks: readonly Task[]): boolean {
  const waited = new Set(names);
  for (const each of waited) {
    const found = tasks.find(({ name, status }) => [name, taskId(name)].includes(each) && status !== 'done');
    for (const next of found === undefined ? [] : [found.name, ...found.depends_on]) waited.add(next);
  }
  return waited.has(task.name);
}
