import type { ConversationView } from './conversation.ts';

/** Messages `[start, end)`: a prompt and everything up to the next one. */
export interface TurnSpan {
  readonly start: number;
  readonly end: number;
  /** Lineage hash up to the first message. */
  readonly key: string;
  /** Lineage hash up to the last message. */
  readonly endHash: string;
  readonly tokens: number;
  /** Number of answers, and so of requests that carried the earlier turns. */
  readonly requests: number;
}

type Conversation = Pick<ConversationView, 'infos' | 'lineage'>;

/**
 * Splits a conversation into turns. Consecutive prompts are one turn; a `role: "system"` message belongs to the turn
 * around it.
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

/** Index of the prompt that this request sends for the first time; -1 in a tool loop. */
export function findFreshPrompt({ infos }: Pick<Conversation, 'infos'>): number {
  let index = infos.length - 1;
  while (index >= 0 && infos[index]?.role === 'system') index -= 1;
  return infos[index]?.isPrompt === true ? index : -1;
}

/** End of the head: the first message and the `role: "system"` messages after it. */
export function findHeadEnd({ infos }: Pick<Conversation, 'infos'>): number {
  let index = 1;
  while (infos[index]?.role === 'system') index += 1;
  return index;
}
