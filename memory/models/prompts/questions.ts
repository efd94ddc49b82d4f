import { z } from 'zod';
import type { TurnText } from '../../model/turn.ts';
import { createPrompt, fenced, type Prompt } from './prompt.ts';
import { bareLabel, labelTurns, renderTranscript } from './transcript.ts';

const TRANSCRIPT_CHARS = 24_000;

const Answer = z.object({
  questions: z.array(
    z.object({
      turn: z.string().describe('label of the turn that answers it, as t2'),
      question: z.string().describe('one sentence'),
      answer: z.string().describe('copied from the turn, at most 80 characters'),
    }),
  ),
});

const RULES = `You test a developer's memory of past work with a coding agent. For each turn below, write the one question that the developer may ask weeks later and that only this turn answers.

- Ask for what was decided, found, set or done, and why; never for what was asked.
- The question must make sense without the turn: name the subject, and do not give the answer away.
- Use other words than the turn where they are natural.
- The answer is copied letter by letter from the turn: a value, a name, or a few words.
- Leave out turns that answer no such question.`;

export function questionsPrompt(
  turns: readonly TurnText[],
  fence: string,
): Prompt<{ readonly turnId: string; readonly question: string; readonly answer: string }[]> {
  const { of } = labelTurns(turns);
  const transcript = renderTranscript(turns, { labels: of, maxChars: TRANSCRIPT_CHARS });
  const turnIds = new Map([...of].map(([turnId, label]) => [label, turnId]));
  const user = `${fenced('conversation', fence, transcript)}\n\nWrite the questions.`;
  return createPrompt({ rules: RULES, fence, user, schema: Answer }, ({ questions }) =>
    questions.flatMap(({ turn, question, answer }) => {
      const turnId = turnIds.get(bareLabel(turn));
      return turnId === undefined ? [] : [{ turnId, question, answer }];
    }),
  );
}
