import { z } from 'zod';
import { clip } from '../../../common/text.ts';
import type { MergeInput, MergeResult } from '../model.ts';
import { createPrompt, fenced, type Prompt } from './prompt.ts';

const SUMMARY_CHARS = 2_000;
const GROUP_CHARS = 600;
const TRIGGER_CHARS = 300;

const Answer = z.object({ fits: z.boolean(), summary: z.string(), trigger: z.string() });

const SHARED = `- trigger: one sentence starting with "When I", written from the agent's side: the situation in which it will need this, with 2 to 4 concrete anchors out of the notes.
- Use only what the notes say. Guess nothing, add no name and no figure.`;

const RULES = {
  merge: `You keep the memory of a coding agent. You are shown notes that seem to say the same thing.

- fits: true only if they are about one and the same matter and none contradicts, corrects or replaces another. Another figure, environment, version, person or date is another matter.
- summary: one note in the place of all, as short statements separated by "; ". Every name, path, version, command and figure of every note stays, exactly as it is written.
${SHARED}`,
  group: `You keep the memory of a coding agent. You are shown notes that seem to belong to one subject.

- fits: true only if a developer would file all of them under one heading that says more than the name of the project.
- summary: what they are about together, in at most three short statements separated by "; ". They stay as they are: no detail has to be repeated.
${SHARED}`,
};

export function mergePrompt({ kind, notes }: MergeInput, fence: string): Prompt<MergeResult> {
  const shown = notes.map(({ summary, trigger, facts }, at) =>
    [`[n${at + 1}] ${summary}`, `    ${trigger}`, ...facts.map((fact) => `    fact: ${fact}`)].join('\n'),
  );
  const user = `${fenced('notes', fence, shown.join('\n'))}\n\nJudge and write for these ${notes.length} notes.`;
  return createPrompt({ rules: RULES[kind], fence, user, schema: Answer }, ({ fits, summary, trigger }) => {
    const text = summary.trim();
    if (fits && text === '') throw new Error('the answer holds no summary');
    const most = kind === 'merge' ? SUMMARY_CHARS : GROUP_CHARS;
    return { fits, summary: clip(text, most), trigger: clip(trigger.trim(), TRIGGER_CHARS) };
  });
}
