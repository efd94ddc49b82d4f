import { isCleanOrigin } from '../../common/turn.ts';
import type { Task } from '../model/task.ts';

/** What the user's sessions do now. */
export interface Activity {
  /** Requests whose answer is streaming. */
  readonly answering: number;
  /** When the newest request came, ms; 0 for none. */
  readonly lastRequestMs: number;
}

export interface JudgeInput {
  readonly task: Pick<Task, 'mode' | 'priority' | 'origin'>;
  /** Hour of the local day, 0 to 23. */
  readonly hour: number;
  readonly nowMs: number;
  readonly activity: Activity;
  /** `22-7`: from 22:00 until 7:00; '' for none. */
  readonly quietHours: string;
  /** Whether reviews may call the model. */
  readonly acts: boolean;
}

export interface Verdict {
  /** Whether to show a desktop notification. Inbox and status line are written in any case. */
  readonly interrupt: boolean;
  readonly mode: Task['mode'];
  readonly reason: string;
  /** The user is busy, and the rules know too little of the task: a model may decide whether to interrupt. */
  readonly isDoubtful?: true;
}

const BUSY_MS = 2 * 60_000;

/** How a due task surfaces. A task that the user did not write never interrupts, asks or acts. */
export function judge({ task, hour, nowMs, activity, quietHours, acts }: JudgeInput): Verdict {
  const quietly = (reason: string): Verdict => ({ interrupt: false, mode: 'notify', reason });
  const { mode, priority, origin } = task;
  if (!isCleanOrigin(origin)) return quietly(`the task is not the user's own (${origin})`);
  if (mode === 'question') return { interrupt: false, mode, reason: 'the next session asks it' };
  if (mode === 'review' && acts) return { interrupt: false, mode, reason: 'tasks.act is on' };
  if (isQuiet(quietHours, hour)) return quietly(`quiet hours (${quietHours})`);
  if (priority === 'high') return { interrupt: true, mode: 'notify', reason: 'the priority is high' };
  if (activity.answering > 0) return { ...quietly('an answer is streaming'), isDoubtful: true };
  if (nowMs - activity.lastRequestMs < BUSY_MS)
    return { ...quietly('a session is active'), interrupt: priority !== 'low', isDoubtful: true };
  return { interrupt: true, mode: 'notify', reason: mode === 'review' ? 'tasks.act is off' : 'the user is not busy' };
}

function isQuiet(hours: string, hour: number): boolean {
  if (hours === '') return false;
  const [from = 0, to = 0] = hours.split('-').map(Number);
  return from <= to ? hour >= from && hour < to : hour >= from || hour < to;
}
