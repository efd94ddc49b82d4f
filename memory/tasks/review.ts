import { z } from 'zod';
import type { Task } from '../model/task.ts';
import { dataRule, fenced, getJsonSchema, type Prompt } from '../models/prompts/prompt.ts';

const Answer = z.object({ review: z.string() });
const TASK_CHARS = 20_000;
const TOPIC_CHARS = 40_000;

const RULES = `You look once at a due task of a developer, and at the page of notes that belongs to it. You have no tools.

- review: at most six sentences: what is known about the task, what is still open, and the next step for the developer.
- Use only what the task and the notes say. Start nothing, promise nothing, and ask for no further review.`;

/** `fence` is a fresh random word. */
export function reviewPrompt({ title, body }: Task, topic: string, fence: string): Prompt<string> {
  const first = [fenced('task', fence, `${title}\n${body}`.slice(0, TASK_CHARS))];
  if (topic !== '') first.push(fenced('notes', fence, topic.slice(0, TOPIC_CHARS)));
  return {
    system: `${RULES}\n\n${dataRule(fence)}`,
    user: `${first.join('\n\n')}\n\nReview this task.`,
    schema: getJsonSchema(Answer),
    parse(value) {
      const text = Answer.parse(value).review.trim();
      if (text === '') throw new Error('the answer holds no review');
      return text;
    },
  };
}
