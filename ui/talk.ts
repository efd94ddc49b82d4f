import type { UiSession } from './types.ts';

interface Stands {
  readonly kind: 'stands';
  /** That are trimmed below it. */
  readonly messages: number;
  readonly lines: UiSession['lines'];
}

/** The conversation with, before each run of trimmed messages, the lines that stand for them. */
export function talkRows({ messages, lines }: Pick<UiSession, 'messages' | 'lines'>) {
  const rows: (UiSession['messages'][number] | Stands)[] = [];
  for (let at = 0; at < messages.length; ) {
    const length = runLength(messages, at);
    const run = messages.slice(at, at + Math.max(1, length));
    if (length > 0) {
      const named = new Set(run.flatMap(({ trimmed_by: by }) => by ?? []));
      rows.push({ kind: 'stands', messages: length, lines: lines.filter((_, line) => named.has(line)) });
    }
    rows.push(...run);
    at += run.length;
  }
  return rows;
}

/** Of the trimmed messages from here on; 0 where this one is not. */
function runLength(messages: UiSession['messages'], from: number): number {
  const end = messages.findIndex((each, at) => at >= from && each.trimmed_by === undefined);
  return (end < 0 ? messages.length : end) - from;
}

/** The readable texts of a message's content, as Claude Code sends it. */
export function messageTexts(content: unknown): string[] {
  if (typeof content === 'string') return content === '' ? [] : [content];
  if (Array.isArray(content)) return content.flatMap(messageTexts);
  if (typeof content !== 'object' || content === null) return [];
  const { type, text, thinking, name, input, content: inner } = content as Record<string, unknown>;
  if (type === 'tool_use') return [`${String(name)} ${JSON.stringify(input, null, 2)}`];
  return messageTexts(text ?? thinking ?? inner);
}
