import { isRecord } from '../../common/text.ts';
import type { CapturedMessage } from '../../common/turn.ts';
import { stripOwnBlocks } from './strip-injected.ts';

export type Block = Readonly<Record<string, unknown>>;

/** Tags that Claude Code injects into user messages. */
const INJECTED_TAGS = ['system-reminder', 'local-command-caveat'] as const;

export function blocksOf(message: CapturedMessage): readonly Block[] {
  const content = parsed(message.content);
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return Array.isArray(content) ? content.filter(isRecord) : [];
}

/** Visible text of a block's `content`; images become `[image]`, other blocks are dropped. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .filter(isRecord)
    .map((block) => (block['type'] === 'image' ? '[image]' : stringOf(block['text'])))
    .filter((text) => text !== '')
    .join('\n');
}

/** Removes what Claude Code and comet-cc injected. */
export function stripInjected(text: string): string {
  const said = INJECTED_TAGS.reduce((left, tag) => cutSpans(left, `<${tag}>`, `</${tag}>`), text);
  return stripOwnBlocks(stripMarkup(said)).trim();
}

/** Restores a slash command as typed; drops interruption notes. */
function stripMarkup(text: string): string {
  if (!text.includes('<command-') && !text.includes('[Request interrupted')) return text;
  return text
    .replace(/<command-message>[^<]*<\/command-message>\s?/g, '')
    .replace(/<command-name>([^<]*)<\/command-name>\s?/g, '$1 ')
    .replace(/<command-args>([^<]*)<\/command-args>/g, '$1')
    .replace(/\[Request interrupted by user(?: for tool use)?\]/g, '');
}

/** An unclosed span extends to the end. */
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

export function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function parsed(content: string): unknown {
  try {
    return JSON.parse(content) as unknown;
  } catch {
    // A redacted or damaged message is still readable text.
    return content;
  }
}
