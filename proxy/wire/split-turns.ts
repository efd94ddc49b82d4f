import type { ConversationView } from './conversation.ts';

/** Messages `[start, end)`: a prompt and all until the next one. */
export interface TurnSpan {
  readonly start: number;
  readonly end: number;
  /** Lineage up to the first message, and up to the last. */
  readonly key: string;
  readonly endHash: string;
  readonly tokens: number;
  /** Answers it got: as many requests carried what came before it. */
  readonly requests: number;
}

type Conversation = Pick<ConversationView, 'infos' | 'lineage'>;

/**
 * Splits a conversation into turns. A turn starts at a prompt that does not directly continue another one:
 * prompts in a row are one turn, and `role: "system"` messages belong to the turn they stand in.
 */
export function splitTurns({ infos, lineage }: Conversation): TurnSpan[] {
  const starts: number[] = [];
  let speaker = '';
  infos.forEach((info, index) => {
    if (info.isPrompt && speaker !== 'prompt') starts.push(index);
    if (info.role !== 'system') speaker = info.isPrompt ? 'prompt' : info.role;
  });
  return starts.map((start, position) => {
    const end = starts[position + 1] ?? infos.length;
    const own = infos.slice(start, end);
    const tokens = own.reduce((total, info) => total + info.tokens, 0);
    const requests = own.filter((info) => info.role === 'assistant').length;
    return { start, end, key: lineage[start] as string, endHash: lineage[end - 1] as string, tokens, requests };
  });
}

/** Index of the prompt that this request asks for the first time; -1 while a tool loop runs. */
export function findFreshPrompt({ infos }: Pick<Conversation, 'infos'>): number {
  let index = infos.length - 1;
  while (index >= 0 && infos[index]?.role === 'system') index -= 1;
  return infos[index]?.isPrompt === true ? index : -1;
}

/** Where the head ends: the first message and the `role: "system"` messages bound to it. */
export function findHeadEnd({ infos }: Pick<Conversation, 'infos'>): number {
  let index = 1;
  while (infos[index]?.role === 'system') index += 1;
  return index;
}
