import { z } from 'zod';
import type { Task } from '../model/task.ts';
import { dataRule, fenced, getJsonSchema, type Prompt } from '../models/prompts/prompt.ts';
import type { Activity } from './judge.ts';

const Answer = z.object({ interrupt: z.boolean() });
const TASK_CHARS = 2_000;

const RULES = `A task of a developer is due while they work with Claude Code. You decide whether a desktop notification interrupts them. The task is in their inbox in any case.

- interrupt: true only if it cannot wait until they pause: a deadline, an appointment, somebody who waits.`;

interface Moment extends Activity {
  readonly nowMs: number;
}

/** `fence` is a fresh random word. */
export function interruptionPrompt(
  { title, body, priority }: Pick<Task, 'title' | 'body' | 'priority'>,
  { answering, lastRequestMs, nowMs }: Moment,
  fence: string,
): Prompt<boolean> {
  const secondsAgo = Math.max(0, Math.round((nowMs - lastRequestMs) / 1_000));
  const state = `An answer is ${answering > 0 ? '' : 'not '}streaming. The last request came ${secondsAgo} s ago.`;
  return {
    system: `${RULES}\n\n${dataRule(fence)}`,
    user: `${fenced('task', fence, `${title}\n${body}`.slice(0, TASK_CHARS))}\n\nPriority: ${priority}. ${state}`,
    schema: getJsonSchema(Answer),
    parse: (value) => Answer.parse(value).interrupt,
  };
}
