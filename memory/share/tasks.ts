import { sha256 } from '../../common/text.ts';
import { patchTask } from '../model/task.ts';
import type { TaskText } from '../tasks/task-files.ts';
import { isPrivateText, type KeptReason, keptPlace } from './filter.ts';
import type { Leaving, ShareContext, SharedNode } from './parts.ts';
import { findTask, type TaskPayload, taskKey } from './row.ts';
import { isNewer } from './state.ts';

export const digestOfTask = ({ name, text }: TaskText): string => sha256(`${name}\n${text}`);

/** Tasks that changed since they left; in a team none leaves. */
export async function changedTasks(
  { memory, rules, redactor, state }: ShareContext,
  removed: ReadonlySet<string>,
  stay: (reason: KeptReason, id: string) => void,
) {
  const changed: Leaving<'task'>[] = [];
  for (const file of rules.scope === 'me' ? await memory.tasks() : []) {
    const source = digestOfTask(file);
    const task = findTask(file);
    const id = task === null ? '' : taskKey(task);
    if (task === null || removed.has(id)) continue;
    const project = task.project === '' ? '' : rules.getKey(task.project);
    const reason = keptPlace(task.project, project, rules) ?? (isPrivateText(file.text) ? 'private' : null);
    if (reason !== null) {
      stay(reason, id);
      continue;
    }
    if (state().known[id]?.source === source) continue;
    const text = redactor.text(project === task.project ? file.text : patchTask(file.text, { project }));
    const left = { name: file.name, text };
    changed.push({ id, source, digest: digestOfTask(left), said: { kind: 'task', ...left } });
  }
  return changed;
}

/**
 * What becomes of a task that came: `keep` where it was changed here meanwhile, so that the change here leaves next;
 * `taken` where another task, made at another time, has its name.
 * @param here  the file that the task has here
 */
export function planTask(payload: TaskPayload, entry: SharedNode | undefined, here: TaskText | null) {
  const digest = digestOfTask(payload);
  const own = here === null ? null : digestOfTask(here);
  if (here !== null && findTask(here)?.created !== findTask(payload)?.created) return 'taken';
  if (!isNewer({ version: payload.version, digest }, entry)) return 'none';
  return own === null || own === entry?.source ? 'save' : 'keep';
}
