import { z } from 'zod';
import { isRecord } from '../../common/json.ts';

const count = z.number().nonnegative().catch(0);
const Usage = z
  .looseObject({ prompt_tokens: count, completion_tokens: count, total_tokens: count, cost: count })
  .catch({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cost: 0 });

const Completion = z.looseObject({
  choices: z
    .array(
      z.looseObject({
        finish_reason: z.string().nullish().catch(null),
        message: z.looseObject({
          content: z.union([z.string(), z.array(z.looseObject({ text: z.string().catch('') }))]).nullish(),
          refusal: z.string().nullish().catch(null),
        }),
      }),
    )
    .min(1),
  usage: Usage.optional(),
});

const Refusal = z.looseObject({
  error: z.union([z.string(), z.looseObject({ message: z.string().catch('') })]),
});

export type CompletionText =
  | { readonly kind: 'answer'; readonly value: unknown; readonly tokens: number; readonly costUsd: number }
  | { readonly kind: 'unusable'; readonly detail: string; readonly tokens: number; readonly costUsd: number };

/** Reads the body of a chat completion. `tokens` is 0 where it does not say what was used. */
export function readCompletion(body: string): CompletionText {
  const read = Completion.safeParse(jsonOf(body));
  if (!read.success) return { kind: 'unusable', detail: 'the body is no chat completion', tokens: 0, costUsd: 0 };
  const { usage, choices } = read.data;
  const { total_tokens = 0, prompt_tokens = 0, completion_tokens = 0, cost = 0 } = usage ?? {};
  const used = { tokens: total_tokens || prompt_tokens + completion_tokens, costUsd: cost };
  const [choice] = choices;
  const content = choice?.message.content ?? '';
  const text = typeof content === 'string' ? content : content.map((part) => part.text).join('');
  const value = structured(text);
  if (value !== null) return { kind: 'answer', value, ...used };
  return { kind: 'unusable', detail: whyNot(choice?.message.refusal, choice?.finish_reason, text), ...used };
}

/** What a refusing answer says, '' when it says nothing. */
export function readRefusal(body: string): string {
  const read = Refusal.safeParse(jsonOf(body));
  if (!read.success) return '';
  const { error } = read.data;
  return typeof error === 'string' ? error : error.message;
}

/** The one object of the text, whatever a model puts around it: thoughts, a fence, a word before and after. */
function structured(text: string): object | null {
  const said = text.replace(/^\s*<think>[\s\S]*?<\/think>/i, '').trim();
  const [first, last] = [said.indexOf('{'), said.lastIndexOf('}')];
  const value = jsonOf(said) ?? (first >= 0 && last > first ? jsonOf(said.slice(first, last + 1)) : undefined);
  return isRecord(value) ? value : null;
}

function whyNot(refusal: string | null | undefined, finish: string | null | undefined, text: string): string {
  if (finish === 'length') return 'the answer was cut off at its length limit';
  if (refusal !== null && refusal !== undefined && refusal !== '') return `it refused: ${refusal}`;
  return text.trim() === '' ? 'the answer is empty' : 'the answer is no JSON object';
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // Not JSON: whoever asked says what was expected.
    return undefined;
  }
}
