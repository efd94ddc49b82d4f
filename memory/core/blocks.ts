import type { CapturedMessage } from '../../common/turn.ts';

export type Block = Readonly<Record<string, unknown>>;

const REMINDER_OPEN = '<system-reminder>';
const REMINDER_CLOSE = '</system-reminder>';
const OUR_MARK = 'comet-cc-memory';

/** Content blocks of a message; a string counts as one text block, what is not JSON as its own text. */
export function blocksOf(message: CapturedMessage): readonly Block[] {
  const content = parsed(message.content);
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return Array.isArray(content) ? content.filter(isBlock) : [];
}

/** Visible text of a block's `content` (string or blocks), images named, the rest left out. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .filter(isBlock)
    .map((block) => (block['type'] === 'image' ? '[image]' : stringOf(block['text'])))
    .filter((text) => text !== '')
    .join('\n');
}

/** The text without Claude Code's reminders and without what we injected ourselves. */
export function withoutInjected(text: string): string {
  return withoutOurs(cutSpans(text, REMINDER_OPEN, REMINDER_CLOSE)).trim();
}

/** `text` without every `open … close` span; one that is not closed reaches to the end. */
function cutSpans(text: string, open: string, close: string): string {
  const kept: string[] = [];
  let at = 0;
  for (;;) {
    const start = text.indexOf(open, at);
    if (start < 0) break;
    kept.push(text.slice(at, start));
    const end = text.indexOf(close, start);
    if (end < 0) return kept.join('');
    at = end + close.length;
  }
  kept.push(text.slice(at));
  return kept.join('');
}

/** Our fences stand on lines of their own; an opening line alone takes the rest with it. */
function withoutOurs(text: string): string {
  if (!text.includes(OUR_MARK)) return text;
  const lines = text.split('\n');
  const fences = lines.flatMap((line, index) => (isFence(line) ? [index] : []));
  const first = fences[0];
  if (first === undefined) return text;
  const last = fences.length > 1 ? (fences.at(-1) as number) : lines.length - 1;
  return [...lines.slice(0, first), ...lines.slice(last + 1)].join('\n');
}

function isFence(line: string): boolean {
  const at = line.indexOf(OUR_MARK);
  return at >= 0 && !/[\p{L}\p{N}]/u.test(line.slice(0, at));
}

export function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function isBlock(value: unknown): value is Block {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parsed(content: string): unknown {
  try {
    return JSON.parse(content) as unknown;
  } catch {
    // A redacted or damaged message is still text that somebody wrote.
    return content;
  }
}
