import type { CapturedTurn } from '../../common/turn.ts';

/** How Claude Code begins the summary that replaces a compacted history: a model wrote it, from unknown sources. */
const CONTINUATION = 'This session is being continued from a previous conversation';

/** Stands in place of all that was said before it, and was not said by anybody. */
export function isContinuation(text: string): boolean {
  return text.startsWith(CONTINUATION);
}

/** Whether the turn may begin with such a summary. */
export function mayContinue({ messages }: Pick<CapturedTurn, 'messages'>): boolean {
  return messages.some(({ role, content }) => role === 'user' && content.includes(CONTINUATION));
}
