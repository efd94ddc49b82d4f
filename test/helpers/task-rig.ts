import { Config } from '../../common/config.ts';
import { silentLog } from '../../common/log.ts';
import type { Task } from '../../memory/model/task.ts';
import { createSurfacing } from '../../memory/tasks/surfacing.ts';
import type { TaskFiles } from '../../memory/tasks/task-files.ts';
import { createTasks } from '../../memory/tasks/tasks.ts';

interface TaskRigOptions {
  readonly rule?: Partial<Config['tasks']>;
  readonly review?: (task: Task, topic: string, signal: AbortSignal) => Promise<string>;
  readonly interrupts?: (task: Task) => Promise<boolean | null>;
  readonly clock?: { nowMs: number };
}

/** Tasks over these files with a clock that tests set; nothing looks at them unasked but after a change. */
export function openTaskRig(
  files: TaskFiles,
  { rule = {}, review, interrupts, clock = { nowMs: 0 } }: TaskRigOptions = {},
) {
  const shown: string[] = [];
  const activity = { answering: 0, lastRequestMs: 0 };
  const surfacing = createSurfacing({
    files,
    now: () => clock.nowMs,
    rule: { ...Config.parse({}).tasks, ...rule },
    activity: () => activity,
    notify: async (text) => void shown.push(text),
    review: review ?? null,
    interrupts: interrupts ?? null,
    log: silentLog,
  });
  const tasks = createTasks({
    files,
    surfacing,
    now: () => clock.nowMs,
    getProject: (directory) => directory ?? '',
    redact: (text) => text.replaceAll('hunter2', '[REDACTED]'),
  });
  return { tasks, surfacing, clock, activity, shown };
}
