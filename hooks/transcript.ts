import { closeSync, openSync, readSync, statSync } from 'node:fs';

/** Read of a transcript's end; older texts are not recent. */
const TAIL_BYTES = 256 * 1024;
const TEXTS = 4;
const END_CHARS = 1_000;

interface Line {
  readonly type?: unknown;
  readonly isMeta?: unknown;
  readonly isSidechain?: unknown;
  readonly message?: { readonly content?: unknown } | null;
}

/** What user and assistant said last in a transcript of Claude Code, oldest first; [] where nothing can be read. */
export function lastSaid(file: string): string[] {
  const said: string[] = [];
  for (const line of tailOf(file).split('\n').reverse()) {
    if (said.length === TEXTS) break;
    const text = textOf(line);
    if (text !== '')
      said.unshift(text.length <= 2 * END_CHARS ? text : text.slice(0, END_CHARS) + text.slice(-END_CHARS));
  }
  return said;
}

function tailOf(file: string): string {
  if (file === '') return '';
  try {
    const found = statSync(file);
    if (!found.isFile()) return '';
    const opened = openSync(file, 'r');
    try {
      const { size } = found;
      const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
      return tail.toString('utf8', 0, readSync(opened, tail, 0, tail.length, size - tail.length));
    } finally {
      closeSync(opened);
    }
  } catch {
    return ''; // a session's first prompt comes before its transcript
  }
}

/** '' for a line that begins before the tail, and for what nobody said. */
function textOf(line: string): string {
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
