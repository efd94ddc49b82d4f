import { FENCE, findBlocks, isRecord, parseJson, sha256, toText } from '../../common/text.ts';
import type { CapturedMessage } from '../../common/turn.ts';
import { imageMark } from '../text/content-type.ts';

export type Block = Readonly<Record<string, unknown>>;

const REMINDER = ['<system-reminder>', '</system-reminder>'] as const;

/** A redacted or damaged message is still readable text. */
export const getBlocks = ({ content }: CapturedMessage): readonly Block[] => findBlocks(parseJson(content) ?? content);

/** The text blocks, without what comet-cc injected. */
export function findTexts(blocks: readonly Block[]): string[] {
  return blocks.filter(isText).map((block) => stripOwnBlocks(toText(block['text'])));
}

export const isText = (block: Block): boolean => block['type'] === 'text';

/** Visible text of a block's `content`; images become marks such as `[image png 1280×720]`, other blocks are dropped. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .filter(isRecord)
    .map((block) => (block['type'] === 'image' ? imageMark(block['source']) : toText(block['text'])))
    .filter((text) => text !== '')
    .join('\n');
}

/** Removes from a result or an answer what Claude Code and comet-cc injected. */
export const stripInjected = (text: string): string => stripOwnBlocks(cutSpans(text, ...REMINDER)).trim();

/** An unclosed span extends to the end. */
function cutSpans(text: string, open: string, close: string): string {
  const pieces: string[] = [];
  let at = 0;
  for (;;) {
    const start = text.indexOf(open, at);
    if (start < 0) break;
    pieces.push(text.slice(at, start));
    const end = text.indexOf(close, start);
    if (end < 0) return pieces.join('');
    at = end + close.length;
  }
  pieces.push(text.slice(at));
  return pieces.join('');
}

/** Names a text block or a result in the `origins` of a turn. */
export const digestText = (text: string): string => sha256(text.trim(), 16);

const OPENING = /<comet-cc-memory(?![\w-])([^<>]*)>/;
/** Words before the tag make the line a sentence about comet-cc, not an injected one. */
const BEFORE_MARK = /^[^\p{L}\p{N}]*$/u;
/** Constant beginnings of injected blocks without a fence. */
const HEADS = [
  'comet-cc recalls, from earlier in this project:',
  'comet-cc, a memory proxy that this user runs locally, adds this block.',
  'Recalled by comet-cc for the prompt above.',
  'Earlier turns of this conversation, kept by comet-cc.',
  '(This asks for exact values or wording:',
  'The work on the prompt above has begun; its first tool calls are kept by comet-cc',
];
/** `- [mem_…] 2026-03-01 (user) …` */
const MEMORY_LINE = /^[\s>*-]*\[mem_\d{8}_\d{6}_[0-9a-f]{6}\] /;

/** Removes what comet-cc injects: blocks, fenced to the end or unfenced to a blank line, and memory lines. */
export function stripOwnBlocks(text: string): string {
  if (!text.includes('comet-cc') && !text.includes('[mem_')) return text;
  const lines = text.split('\n');
  const pieces: string[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] as string;
    const mark = line.indexOf(FENCE);
    if (mark >= 0 && BEFORE_MARK.test(line.slice(0, mark))) at = endOfFence(lines, at);
    else if (HEADS.some((head) => line.trimStart().startsWith(head))) at = endOfBlock(lines, at);
    else if (!MEMORY_LINE.test(line)) pieces.push(line);
  }
  return pieces.length === lines.length ? text : pieces.join('\n');
}

/** Index of the closing line, or `from` when `lines[from]` opens no fence. */
function endOfFence(lines: readonly string[], from: number): number {
  const marks = OPENING.exec(lines[from] ?? '')?.[1];
  if (marks === undefined) return from;
  const closing = lines.findIndex((line, at) => at > from && line.includes(`</${FENCE}${marks}>`));
  return closing < 0 ? lines.length : closing;
}

function endOfBlock(lines: readonly string[], from: number): number {
  const blank = lines.findIndex((line, at) => at > from && line.trim() === '');
  return blank < 0 ? lines.length : blank;
}
