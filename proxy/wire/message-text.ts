import { type ConversationView, parseSlice } from './conversation.ts';

/** The text of a message without Claude Code's reminders; '' without any. */
export function readMessageText(view: ConversationView, index: number): string {
  const slice = view.scan.messages[index];
  if (slice === undefined) return '';
  const { content } = parseSlice(view.body, slice) as { content?: unknown };
  const blocks =
    typeof content === 'string' ? [{ type: 'text', text: content }] : Array.isArray(content) ? content : [];
  return blocks
    .filter((block) => block?.type === 'text' && typeof block.text === 'string')
    .map((block) => String(block.text))
    .filter((text) => !text.trimStart().startsWith('<system-reminder>'))
    .join('\n')
    .trim();
}

/** The texts of the messages before `index` that have one, oldest first. */
export function readRecentTexts(view: ConversationView, index: number, most: number): string[] {
  const texts: string[] = [];
  for (let at = index - 1; at >= 0 && texts.length < most; at -= 1) {
    if (view.infos[at]?.role === 'system') continue;
    const text = readMessageText(view, at);
    if (text !== '') texts.unshift(text);
  }
  return texts;
}
