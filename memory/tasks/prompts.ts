import { z } from 'zod';
import type { Task } from '../model/task.ts';
import { createPrompt, fenced, type Prompt } from '../models/prompts/prompt.ts';
import type { Activity } from './judge.ts';

const Review = z.object({ review: z.string() });
const REVIEWED_CHARS = 20_000;
const TOPIC_CHARS = 40_000;

const REVIEW_RULES = `You look once at a due task of a developer, and at the page of notes that belongs to it. You have no tools.

- review: at most six sentences: what is known about the task, what is still open, and the next step for the developer.
- Use only what the task and the notes say. Start nothing, promise nothing, and ask for no further review.`;

export function reviewPrompt({ title, body }: Task, topic: string, fence: string): Prompt<string> {
  const first = [fenced('task', fence, `${title}\n${body}`.slice(0, REVIEWED_CHARS))];
  if (topic !== '') first.push(fenced('notes', fence, topic.slice(0, TOPIC_CHARS)));
  const user = `${first.join('\n\n')}\n\nReview this task.`;
  return createPrompt({ rules: REVIEW_RULES, fence, user, schema: Review }, ({ review }) => {
    if (review.trim() === '') throw new Error('the answer holds no review');
    return review.trim();
  });
}

const Interruption = z.object({ interrupt: z.boolean() });
const TASK_CHARS = 2_000;

const INTERRUPTION_RULES = `A task of a developer is due while they work with Claude Code. You decide whether a desktop notification interrupts them. The task is in their inbox in any case.

- interrupt: true only if it cannot wait until they pause: a deadline, an appointment, somebody who waits.`;

export function interruptionPrompt(
  { title, body, priority }: Pick<Task, 'title' | 'body' | 'priority'>,
  { answering, lastRequestMs, nowMs }: Activity & { readonly nowMs: number },
  fence: string,
): Prompt<boolean> {
  const secondsAgo = Math.max(0, Math.round((nowMs - lastRequestMs) / 1_000));
  const state = `An answer is ${answering > 0 ? '' : 'not '}streaming. The last request came ${secondsAgo} s ago.`;
  const user = `${fenced('task', fence, `${title}\n${body}`.slice(0, TASK_CHARS))}\n\nPriority: ${priority}. ${state}`;
  return createPrompt({ rules: INTERRUPTION_RULES, fence, user, schema: Interruption }, ({ interrupt }) => interrupt);
}
