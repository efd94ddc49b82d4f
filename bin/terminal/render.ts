import type { RawMessage } from '../../memory/index.ts';
import { documentText } from '../../memory/ingest/chunk-document.ts';
import { oneLine, printable } from './format.ts';
import type { Paint } from './term.ts';

/** A verbatim message for reading; `--json` has the exact content. */
export function messageLines(message: RawMessage, paint: Paint): string[] {
  const head = paint('cyan', `${message.seq} ${oneLine(message.role)}`);
  return [head, ...contentText(message.content).map((text) => printable(text))];
}

/** One text for each block of a message's content. */
export function contentText(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content)) return [JSON.stringify(content)];
  return content.map((block) => blockText(block as Record<string, unknown>));
}

function blockText(block: Record<string, unknown>): string {
  switch (block['type']) {
    case 'text':
      return String(block['text']);
    case 'thinking':
      return `[thinking] ${String(block['thinking'])}`;
    case 'tool_use':
      return `[${String(block['name'])}] ${JSON.stringify(block['input'])}`;
    case 'tool_result':
      return `[result] ${contentText(block['content'] ?? '').join('\n')}`;
    case 'document':
      return documentText(block) || '[document]';
    case 'image':
      return '[image]';
    default:
      return JSON.stringify(block);
  }
}
