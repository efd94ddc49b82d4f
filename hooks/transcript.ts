import { closeSync, openSync, readSync, statSync } from 'node:fs';

/** Only the end of a transcript is read. */
const TAIL_BYTES = 256 * 1024;
const TEXTS = 4;
const END_CHARS = 1_000;

interface Line {
  readonly type?: unknown;
  readonly isMeta?: unknown;
  readonly isSidechain?: unknown;
  readonly message?: { readonly content?: unknown } | null;
}

/** The last texts of user and assistant in a transcript of Claude Code, oldest first; [] where it cannot be read. */
export function readLastTexts(file: string): string[] {
  const texts: string[] = [];
  for (const line of readTail(file).split('\n').reverse()) {
    if (texts.length === TEXTS) break;
    const text = getText(line);
    if (text !== '')
      texts.unshift(text.length <= 2 * END_CHARS ? text : text.slice(0, END_CHARS) + text.slice(-END_CHARS));
  }
  return texts;
}

function readTail(file: string): string {
  if (file === '') return '';
  try {
    const stats = statSync(file);
    if (!stats.isFile()) return '';
    const opened = openSync(file, 'r');
    try {
      const { size } = stats;
      const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
      return tail.toString('utf8', 0, readSync(opened, tail, 0, tail.length, size - tail.length));
    } finally {
      closeSync(opened);
    }
  } catch {
    return ''; // The transcript is created after the first prompt.
  }
}

/** '' for a line that is cut off and for one that is not a message. */
function getText(line: string): string {
  try {
    const { type, isMeta, isSidechain, message } = JSON.parse(line) as Line;
    if ((type !== 'user' && type !== 'assistant') || isMeta === true || isSidechain === true) return '';
    const content = message?.content;
    if (typeof content === 'string') return content.trim();
    const blocks = Array.isArray(content) ? (content as { type?: unknown; text?: unknown }[]) : [];
    return blocks
      .flatMap((block) => (block?.type === 'text' && typeof block.text === 'string' ? block.text : []))
      .join('\n')
      .trim();
  } catch {
    return '';
  }
}
